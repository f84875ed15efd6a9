// Numbers of two and four bytes, bit by bit: JavaScript has float64 alone, and a NaN that passes through it loses its payload.

export type FloatType = "F32" | "F16" | "BF16";

const single = new Float32Array(1);
const word = new Uint32Array(single.buffer);

/** The float32 of 32 bits. */
export function ofBits(bits: number): number {
  word[0] = bits;
  return single[0]!;
}

/** The 32 bits of a number, rounded to float32. */
export function bitsOf(value: number): number {
  single[0] = value;
  return word[0]!;
}

/** The 16 bits of a number, rounded to bfloat16, to nearest even; `truncate` drops the low bits instead. */
export function toBfloat16(value: number, truncate = false): number {
  const bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return truncate ? bits >>> 16 : ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16) & 0xffff;
}

/** The 16 bits of a number, rounded to float32 and then to float16, to nearest even each time. */
export function toFloat16(value: number): number {
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  const exponent = (magnitude >>> 23) - 127;
  if (exponent > 15) return sign | 0x7c00;
  if (exponent < -25) return sign;
  // A denormal has its leading one written out, and loses more bits.
  const normal = exponent >= -14;
  const full = normal ? magnitude - (112 << 23) : (magnitude & 0x7fffff) | 0x800000;
  const lost = normal ? 13 : -1 - exponent;
  const kept = full >>> lost;
  const rest = full & ((1 << lost) - 1);
  const half = 1 << (lost - 1);
  return sign | (kept + (rest > half || (rest === half && kept & 1) ? 1 : 0));
}

/** The number that 16 bits of a float16 mean. */
export function ofFloat16(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 31;
  const fraction = bits & 0x3ff;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1024 + fraction) * 2 ** (exponent - 25) : fraction * 2 ** -24);
}

/** A float32, a denormal one as the zero of its sign. */
export function flushed(value: number): number {
  return Math.abs(value) < 2 ** -126 ? value * 0 : value;
}

/** A number rounded to a type, as a number. */
export function rounded(type: FloatType, value: number, truncate = false): number {
  if (type === "F32") return Math.fround(value);
  return type === "F16" ? ofFloat16(toFloat16(value)) : ofBits(toBfloat16(value, truncate) << 16);
}
