// The token mask as a launch plan: the kernel's text lives here, and whoever judges runs it.

import type { Arguments } from "./calls.ts";
import { maskArguments } from "./sampling.ts";
import { size } from "./tensors.ts";

const THREADS = 128;
const NAMES = { F32: "float32", F16: "float16", BF16: "bfloat16" };

const SOURCE = `
  const uint i = thread_position_in_grid.x;
  const uint id = i % vocab;
  const bool there = id / 32 < uint(bits_shape[0]);
  const bool allowed = there && ((bits[id / 32] >> (id % 32)) & 1);
  out[i] = logits[i] + T(allowed ? 0.0f : -INFINITY);
`;

/** One launch, a thread an element. */
export function maskPlan(given: Arguments): object {
  const { logits } = maskArguments(given);
  const dtype = NAMES[logits.dtype];
  const count = size(logits.shape);
  const vocabulary = logits.shape.at(-1)!.toString(16).padStart(8, "0");
  const launch = {
    name: "token_mask",
    source: SOURCE,
    inputs: [
      { is: "argument", name: "logits", argument: "logits", shape: [count] },
      { is: "argument", name: "bits", argument: "bits" },
      { is: "constant", name: "vocab", dtype: "uint32", bits: [`0x${vocabulary}`] },
    ],
    outputs: [{ name: "out", dtype, shape: [count] }],
    template: [{ is: "dtype", name: "T", value: dtype }],
    grid: [count, 1, 1],
    threadgroup: [THREADS, 1, 1],
  };
  return { launches: [launch], result: { launch: 0, output: "out", shape: logits.shape } };
}
