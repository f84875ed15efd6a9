// The program that mlx-assay starts: one JSON object a line on standard input and output, as docs/adapters.md has it.
//
//   mlx-assay run 'argmax_given/*' --implementation 'cmd: bun adapter.ts'
//
// Nothing but answers may be printed on standard output; console.error is for everything else.

import { readSync, writeSync } from "node:fs";
import { type Arguments, type Plain, Refused, type Setting, Unsupported, tensor } from "./calls.ts";
import { maskPlan } from "./mask_kernel.ts";
import { applyTokenBitmask, argmaxGiven, logitSoftcap } from "./sampling.ts";
import { type Tensor, read, write } from "./tensors.ts";
import { trellisDecode } from "./trellis.ts";

const BUGS = ["tie", "rounding"];
const flags = process.argv.slice(2);
const plain = flags.includes("--plain");
const bug = flags.includes("--bug") ? flags[flags.indexOf("--bug") + 1] : null;
if (bug !== null && !BUGS.includes(`${bug}`)) {
  console.error(`Expected --bug ${BUGS.join(" or ")} but got ${bug}`);
  process.exit(2);
}
const setting: Setting = { flush: false, float32: flags.includes("--float32"), bug: bug as Setting["bug"] };

/** A result, or a launch plan that makes one. */
type Outcome = { tensor: Tensor } | { plan: object };

const OPERATIONS: Record<string, (given: Arguments) => Outcome> = {
  argmax_given: (given) => ({ tensor: argmaxGiven(given, setting) }),
  apply_token_bitmask: (given) => (plain ? { tensor: applyTokenBitmask(given) } : { plan: maskPlan(given) }),
  logit_softcap: (given) => ({ tensor: logitSoftcap(given, setting) }),
  compiled_logit_softcap: (given) => ({ tensor: logitSoftcap(given, setting) }),
  echo: (given) => ({ tensor: tensor(given, "x") }),
  trellis_decode: (given) => ({ tensor: trellisDecode(given, setting) }),
};

/** The contract of trellis_decode leaves denormals to the machine that kernels run on: `executor` tells which that is. */
function start(order: any): object {
  setting.flush = order.executor.f32_denormals === "flushed";
  const bun = process.versions.bun;
  return {
    protocol: 1,
    name: "mlx-assay-adapter-example",
    version: "0.1.0",
    runtime: bun ? `bun ${bun}` : `node ${process.version}`,
    device: "cpu",
    operations: Object.keys(OPERATIONS),
    plans: true,
  };
}

function run(order: any): object {
  const { seq } = order;
  try {
    const operation = OPERATIONS[order.operation];
    if (!operation) throw new Unsupported(`there is no ${order.operation} here`);
    const outcome = operation(argumentsOf(order));
    if ("plan" in outcome) return { seq, plan: outcome.plan };
    write(order.out, outcome.tensor);
    return { seq, ok: true };
  } catch (error) {
    if (error instanceof Unsupported) return { seq, unsupported: error.message };
    if (error instanceof Refused) return { seq, error: error.message, type: error.type };
    console.error(error);
    return { seq, error: `${error}` };
  }
}

function argumentsOf(order: any): Arguments {
  const tensors = read(order.in);
  return new Map(
    Object.entries<any>(order.parameters).map(([name, value]) => [name, value.is === "tensor" ? tensors.get(name)! : plainOf(value)]),
  );
}

/** Floats come as the 16 hex digits of a binary64, which JSON cannot lose. */
function plainOf(value: any): Plain {
  if (value.is === "none") return null;
  if (value.is === "integer") return BigInt(value.value);
  if (value.is !== "float") return value.value;
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(value.bits));
  return view.getFloat64(0);
}

function* lines(): Generator<string> {
  const chunk = Buffer.alloc(1 << 16);
  let rest = Buffer.alloc(0);
  for (let count; (count = readSync(0, chunk)) > 0; ) {
    rest = Buffer.concat([rest, chunk.subarray(0, count)]);
    for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) yield rest.toString("utf8", 0, end);
  }
}

function answer(message: object): void {
  let text = Buffer.from(JSON.stringify(message) + "\n");
  while (text.length) text = text.subarray(writeSync(1, text));
}

for (const line of lines()) {
  const order = JSON.parse(line);
  if (order.cmd === "stop") break;
  if (order.cmd === "start") answer(start(order));
  else if (order.cmd === "run") answer(run(order));
  else {
    console.error(`Expected start, run or stop but got ${line}`);
    process.exit(2);
  }
}
