// What a call is made of, and the ways in which it may end without a result.

import { type Tensor, isFloat } from "./tensors.ts";
import type { FloatType } from "./floats.ts";

/** Whole numbers are bigint, so that 12.0 is not 12. */
export type Plain = bigint | number | string | boolean | null;

/** The arguments of one call, by the contract's parameter names. */
export type Arguments = Map<string, Tensor | Plain>;

/**
 * What holds for every call: whether float32 denormals count as zeros, which the one who judges says when it starts the
 * program, whether float32 is computed where its bits are a device's own, and a bug that is planted on purpose.
 */
export interface Setting {
  flush: boolean;
  float32: boolean;
  bug: "tie" | "rounding" | null;
}

/** An exception that a contract may expect; the names are Python's, in which contracts are written. */
export class Refused extends Error {
  readonly type: "ValueError" | "TypeError";

  constructor(type: "ValueError" | "TypeError", message: string) {
    super(message);
    this.type = type;
  }
}

/** What this program does not do, on purpose. */
export class Unsupported extends Error {}

/** An argument that is an array. */
export function tensor(given: Arguments, name: string): Tensor {
  const value = given.get(name);
  if (value === null || typeof value !== "object") throw new Refused("TypeError", `Expected ${name} as an array but got ${value}`);
  return value!;
}

/** An argument that is an array of floats. */
export function floats(given: Arguments, name: string): Tensor & { dtype: FloatType } {
  const value = tensor(given, name);
  if (!isFloat(value)) throw new Refused("ValueError", `Expected ${name} of F32, F16 or BF16 but got ${value.dtype}`);
  return value;
}

/** An argument that is a whole number of a range. */
export function integer(given: Arguments, name: string, least: number, most: number): number {
  const value = given.get(name);
  if (typeof value !== "bigint" || value < least || value > most)
    throw new Refused("ValueError", `Expected ${name} as a whole number of ${least} to ${most} but got ${value} (type ${typeof value})`);
  return Number(value);
}
