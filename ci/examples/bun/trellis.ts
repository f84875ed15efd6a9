// Weights of a tail-biting trellis: from packed words to numbers.

import { type Arguments, Refused, type Setting, floats, integer, tensor } from "./calls.ts";
import { flushed, ofBits, rounded } from "./floats.ts";
import { type Tensor, numbers, tensorOf, words } from "./tensors.ts";

const DEVIATION = 147.800537109375;
const RECIPROCAL = ofBits(0x3bddb447);
const VARIANTS = ["precise", "refined", "lut-threadgroup", "lut-device", "state", "refined"];
const FORMS = new Set([...VARIANTS, "unrefined", "integer", "bits"]);
const ROUNDED_BELOW = 4;
const CODEBOOK_STATES = 4096;

interface Geometry {
  k: number;
  L: number;
  T: number;
  rows: number;
  cols: number;
  paired: boolean;
}

/** The stored matrix, float32 [rows, cols]. */
export function trellisDecode(given: Arguments, setting: Setting): Tensor {
  const layout = geometry(given);
  const codes = tensor(given, "codes");
  const blockWords = (layout.T * layout.k) / 32;
  const blocks = layout.cols / layout.T;
  const expected = layout.paired ? [blocks / 2, layout.rows, 2 * blockWords] : [layout.rows, blocks * blockWords];
  if (codes.dtype !== "U32" || `${codes.shape}` !== `${expected}`)
    throw new Refused("ValueError", `Expected codes [${expected}] of U32 but got [${codes.shape}] of ${codes.dtype}`);
  const variant = integer(given, "variant", 0, 13);
  const form = formOf(given, variant, layout.L);
  const scales = given.get("scales") === null ? null : floats(given, "scales");
  if (scales && `${scales.shape}` !== `${layout.rows}`) throw new Refused("ValueError", `Expected ${layout.rows} scales but got [${scales.shape}]`);

  const table = Float32Array.from({ length: layout.L > 16 ? 0 : 2 ** layout.L }, (_, state) => valueOf(state, form));
  const small = setting.flush ? flushed : (value: number) => value;
  const factors = scales && numbers(scales).map(small);
  const packed = words(codes);
  const weights = new Float32Array(layout.rows * layout.cols);
  for (let row = 0; row < layout.rows; row++) {
    for (let block = 0; block < blocks; block++) {
      const first = layout.paired
        ? ((block >> 1) * layout.rows + row) * 2 * blockWords + (block & 1) * blockWords
        : (row * blocks + block) * blockWords;
      for (let t = 0; t < layout.T; t++) {
        const state = stateAt(packed, first, blockWords, layout, t);
        const value = table[state] ?? valueOf(state, form);
        weights[row * layout.cols + block * layout.T + t] = factors ? small(Math.fround(value * factors[row]!)) : value;
      }
    }
  }
  const coarse = factors && variant < ROUNDED_BELOW;
  return tensorOf("F32", [layout.rows, layout.cols], coarse ? weights.map((w) => rounded("BF16", w, setting.bug === "rounding")) : weights);
}

/** L bits from bit (T - 1 - t) * k of the block on, around its end. */
function stateAt(packed: ArrayLike<number>, first: number, blockWords: number, { k, L, T }: Geometry, t: number): number {
  const bit = (T - 1 - t) * k;
  const at = bit >>> 5;
  const shift = bit & 31;
  const low = packed[first + at]! >>> shift;
  const high = shift ? packed[first + ((at + 1) % blockWords)]! << (32 - shift) : 0;
  return (low | high) & ((1 << L) - 1);
}

/** What a state decodes to. */
function valueOf(state: number, form: string): number {
  if (form === "state") return state;
  const mixed = (Math.imul(state, 34038481) + 76625530) >>> 0;
  const sum = (mixed & 255) + ((mixed >>> 8) & 255) + ((mixed >>> 16) & 255) + (mixed >>> 24) - 510;
  if (form === "integer") return sum;
  return Math.fround(form === "unrefined" || form === "bits" ? sum * RECIPROCAL : sum / DEVIATION);
}

function formOf(given: Arguments, variant: number, L: number): string {
  const form = given.get("form") ?? VARIANTS[variant] ?? "unrefined";
  if (typeof form !== "string" || !FORMS.has(form)) throw new Refused("ValueError", `Expected a form but got ${form}`);
  if (form === "lut-threadgroup" && 2 ** L > CODEBOOK_STATES) throw new Refused("ValueError", `Expected L up to 12 for ${form} but got ${L}`);
  return form;
}

function geometry(given: Arguments): Geometry {
  const k = integer(given, "k", 2, 4);
  const L = integer(given, "L", k, 24);
  const T = integer(given, "T", 1, 2 ** 20);
  const axis = integer(given, "axis", 0, 1);
  const rows = integer(given, "rows", 1, 2 ** 31);
  const cols = integer(given, "cols", 1, 2 ** 31);
  const pair = given.get("block_interleave") ?? null;
  if ((T * k) % 32 || T * k < L) throw new Refused("ValueError", `Expected T * k of whole words and L bits but got ${T * k}`);
  if (cols % T) throw new Refused("ValueError", `Expected cols of whole blocks of ${T} but got ${cols}`);
  const paired = pair !== null;
  if (paired && (pair !== 2n || k !== 3 || T !== 256 || axis !== 0 || cols % 512))
    throw new Refused("ValueError", `Expected pairs of blocks with k 3, T 256, axis 0 and cols of 512 alone but got k ${k}, T ${T}, cols ${cols}`);
  return { k, L, T, rows, cols, paired };
}
