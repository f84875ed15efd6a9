// Expected values of GPU kernels, bit by bit. No dependency; a browser may fetch the same files.
import { readFileSync } from "node:fs";

const at = (path) => new URL(`./vectors/${path}`, import.meta.url);

/** Every group: { name, path, form, scope, key, oracle, operation, sha256 }. */
export const groups = () => JSON.parse(readFileSync(at("index.json"), "utf8")).groups;

/** The reviewable document of a group: cases, reasons, provenance. */
export const document = (path) => JSON.parse(readFileSync(at(`${path}.json`), "utf8"));

/** The tensors of a group by name, each { dtype, shape, bytes }: bits as they are, no number is parsed. */
export function tensors(path) {
  const data = readFileSync(at(`${path}.safetensors`));
  const size = Number(data.readBigUInt64LE(0));
  const header = JSON.parse(data.toString("utf8", 8, 8 + size));
  delete header.__metadata__;
  return new Map(
    Object.entries(header).map(([name, { dtype, shape, data_offsets: [start, end] }]) => [
      name,
      { dtype, shape, bytes: new Uint8Array(data.subarray(8 + size + start, 8 + size + end)) },
    ]),
  );
}

/** The calls of a group of form "values": { id, label, plain, inputs, expected }, tensors as above. */
export function* calls(path) {
  const found = tensors(path);
  for (const { id, calls } of document(path).cases) {
    for (const { label, plain } of calls) {
      const prefix = `${id}#${label}/`;
      const inputs = {};
      for (const [name, tensor] of found) {
        if (name.startsWith(prefix)) inputs[name.slice(prefix.length)] = tensor;
      }
      const { expected, ...rest } = inputs;
      yield { id, label, plain, inputs: rest, expected };
    }
  }
}
