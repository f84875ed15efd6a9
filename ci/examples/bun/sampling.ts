// The sampling kernels, computed here: docs/contracts.md says what each promises.

import { type Arguments, Refused, type Setting, Unsupported, floats, tensor } from "./calls.ts";
import { type FloatType, rounded } from "./floats.ts";
import { type Tensor, numbers, size, tensorOf, words } from "./tensors.ts";

const LARGEST = 2 ** 31 - 1;

/** argmax(logits - lse) along the last axis, each score rounded once; the first NaN wins, as in MLX from 0.32.3. */
export function argmaxGiven(given: Arguments, setting: Setting): Tensor {
  const logits = floats(given, "logits");
  const lse = floats(given, "lse");
  if (!logits.shape.length || !size(logits.shape)) throw new Refused("ValueError", `Expected logits [..., V] but got [${logits.shape}]`);
  const shape = logits.shape.slice(0, -1);
  if (lse.dtype !== logits.dtype || `${lse.shape}` !== `${[...shape, 1]}`)
    throw new Refused("ValueError", `Expected lse [${[...shape, 1]}] of ${logits.dtype} but got [${lse.shape}] of ${lse.dtype}`);
  const vocabulary = logits.shape.at(-1)!;
  const values = numbers(logits);
  const shifts = numbers(lse);
  const ids = Uint32Array.from(shifts, (shift, row) => {
    const scores = values.subarray(row * vocabulary, (row + 1) * vocabulary);
    return argmax(logits.dtype, scores, shift, setting);
  });
  return { dtype: "U32", shape, bytes: new Uint8Array(ids.buffer) };
}

function argmax(type: FloatType, logits: Float32Array, shift: number, setting: Setting): number {
  let best = -1;
  let greatest = -Infinity;
  for (let id = 0; id < logits.length; id++) {
    const score = rounded(type, logits[id]! - shift, setting.bug === "rounding");
    if (Number.isNaN(score)) return id;
    if (best < 0 || score > greatest || (setting.bug === "tie" && score === greatest)) {
      best = id;
      greatest = score;
    }
  }
  return best;
}

/** Infinity and a NaN, by type. */
const SPECIAL: Record<FloatType, [number, number]> = {
  F32: [0x7f800000, 0x7fc00000],
  F16: [0x7c00, 0x7e00],
  BF16: [0x7f80, 0x7fc0],
};

/** The arrays of a token mask, looked at: every other array is refused. */
export function maskArguments(given: Arguments): { logits: Tensor & { dtype: FloatType }; bits: Tensor } {
  const logits = floats(given, "logits");
  const bits = tensor(given, "bits");
  const count = size(logits.shape);
  if (!logits.shape.length || !count || count > LARGEST) throw new Refused("ValueError", `Expected logits [..., V] but got [${logits.shape}]`);
  if (bits.dtype !== "I32") throw new Refused("TypeError", `Expected bits of I32 but got ${bits.dtype}`);
  if (bits.shape.length !== 1) throw new Refused("ValueError", `Expected bits [words] but got [${bits.shape}]`);
  return { logits, bits };
}

/** logits + 0 where a bit is set, + -Infinity elsewhere, on bits: so every payload of a NaN stays what it is. */
export function applyTokenBitmask(given: Arguments): Tensor {
  const { logits, bits } = maskArguments(given);
  const mask = words(bits);
  const values = words(logits).slice();
  const vocabulary = logits.shape.at(-1)!;
  const [infinity, nan] = SPECIAL[logits.dtype];
  const sign = logits.dtype === "F32" ? 0x80000000 : 0x8000;
  for (let i = 0; i < values.length; i++) {
    const id = i % vocabulary;
    const allowed = (id >>> 5) < mask.length && (mask[id >>> 5]! >>> (id & 31)) & 1;
    const value = values[i]!;
    if ((value & (sign - 1)) > infinity) continue;
    if (allowed) values[i] = value === sign ? 0 : value;
    else values[i] = value === infinity ? nan : sign | infinity;
  }
  return { dtype: logits.dtype, shape: logits.shape, bytes: new Uint8Array(values.buffer) };
}

/** tanh(x / cap) * cap, rounded after each operation. */
export function logitSoftcap(given: Arguments, setting: Setting): Tensor {
  const x = tensor(given, "x");
  const cap = given.get("cap");
  if (typeof cap !== "number" && typeof cap !== "bigint") throw new Refused("TypeError", `Expected cap as a number but got ${typeof cap}`);
  if (!(x.dtype in SPECIAL)) throw new Refused("TypeError", `Expected x of F32, F16 or BF16 but got ${x.dtype}`);
  const type = x.dtype as FloatType;
  if (type === "F32" && !setting.float32) throw new Unsupported("the bits of a device's own tanh; --float32 has the nearest ones");
  const step = (value: number) => rounded(type, value, setting.bug === "rounding");
  const constant = step(Math.fround(Number(cap)));
  const values = numbers(x).map((value) => step(step(Math.tanh(step(value / constant))) * constant));
  return tensorOf(type, x.shape, values);
}
