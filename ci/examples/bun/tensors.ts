// The safetensors format (https://github.com/huggingface/safetensors), both ways: a header in JSON, then plain bytes.

import { readFileSync, writeFileSync } from "node:fs";
import { type FloatType, ofBits, ofFloat16, toBfloat16, toFloat16 } from "./floats.ts";

export type Shape = number[];

/** An array as its bytes, little-endian, row by row. */
export interface Tensor {
  dtype: string;
  shape: Shape;
  bytes: Uint8Array;
}

const WIDTHS: Record<string, number> = { U8: 1, I8: 1, F16: 2, BF16: 2, U32: 4, I32: 4, F32: 4, I64: 8, F64: 8 };
const FLOATS = ["F32", "F16", "BF16"];

/** How many elements a shape has. */
export function size(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** Whether a tensor holds numbers of one of the three types that kernels take. */
export function isFloat(tensor: Tensor): tensor is Tensor & { dtype: FloatType } {
  return FLOATS.includes(tensor.dtype);
}

/** Every tensor of a file, each with memory of its own, so that it is aligned whatever the header's length. */
export function read(path: string): Map<string, Tensor> {
  const file = readFileSync(path);
  const length = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.toString("utf8", 8, 8 + length));
  const found = new Map<string, Tensor>();
  for (const [name, entry] of Object.entries<any>(header)) {
    if (name === "__metadata__") continue;
    const [start, end] = entry.data_offsets;
    const bytes = new Uint8Array(end - start);
    bytes.set(file.subarray(8 + length + start, 8 + length + end));
    found.set(name, { dtype: entry.dtype, shape: entry.shape, bytes });
  }
  return found;
}

/** Writes a file of one tensor. */
export function write(path: string, tensor: Tensor): void {
  if (tensor.bytes.length !== size(tensor.shape) * WIDTHS[tensor.dtype]!) throw new Error("bytes that are not the shape's");
  const entry = { dtype: tensor.dtype, shape: tensor.shape, data_offsets: [0, tensor.bytes.length] };
  const text = JSON.stringify({ out: entry });
  const header = new TextEncoder().encode(text + " ".repeat(-text.length & 7));
  const file = new Uint8Array(8 + header.length + tensor.bytes.length);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(header, 8);
  file.set(tensor.bytes, 8 + header.length);
  writeFileSync(path, file);
}

/** The elements of 16 or 32 bits of a tensor, as they are. */
export function words(tensor: Tensor): Uint16Array | Uint32Array {
  const { buffer, byteLength } = tensor.bytes;
  return WIDTHS[tensor.dtype] === 2 ? new Uint16Array(buffer, 0, byteLength / 2) : new Uint32Array(buffer, 0, byteLength / 4);
}

/** A float tensor's numbers. */
export function numbers(tensor: Tensor): Float32Array {
  const bits = words(tensor);
  if (tensor.dtype === "F32") return new Float32Array(bits.buffer, 0, bits.length);
  const half = tensor.dtype === "F16";
  return Float32Array.from(bits, (word) => (half ? ofFloat16(word) : ofBits(word << 16)));
}

/** A tensor of numbers, rounded to a type. */
export function tensorOf(dtype: FloatType, shape: Shape, values: ArrayLike<number>): Tensor {
  if (dtype === "F32") return { dtype, shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
  const convert = dtype === "F16" ? toFloat16 : (value: number) => toBfloat16(value);
  return { dtype, shape, bytes: new Uint8Array(Uint16Array.from(values, convert).buffer) };
}
