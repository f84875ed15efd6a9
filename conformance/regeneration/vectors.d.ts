export interface Tensor { dtype: string; shape: number[]; bytes: Uint8Array }
export interface Group {
  name: string; path: string; form: "values" | "digests"; scope: "exact" | "library";
  key: Record<string, string>; oracle: string; operation: string; sha256: string;
}
export interface Call {
  id: string; label: string; plain: Record<string, string>; inputs: Record<string, Tensor>; expected: Tensor;
}
export function groups(): Group[];
export function document(path: string): Record<string, unknown>;
export function tensors(path: string): Map<string, Tensor>;
export function calls(path: string): Generator<Call>;
