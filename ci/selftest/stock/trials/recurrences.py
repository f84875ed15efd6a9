"""The gated delta rule and wide products of a few vectors."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from trials.matrices import REASON, summed
from trials.trial import BF16, F16, F32, NAMES, U32, Array, Trial, normal, on_cpu, rounding, wide

TYPES = {F32: "float", F16: "float16_t", BF16: "bfloat16_t"}


def _delta(library: Any, q: Any, k: Any, v: Any, g: Any, b: Any, state: Any) -> tuple[Any, Any]:
    """The recurrence, step by step, in the arrays' own library: y [B, T, Hv, Dv], state [B, Hv, Dv, Dk]."""
    repeat = v.shape[2] // k.shape[2]
    outs = []
    for t in range(q.shape[1]):
        keys, queries = (library.repeat(x[:, t], repeat, 1) for x in (k, q))
        state = state * g[:, t][:, :, None, None]
        held = (state * keys[:, :, None]).sum(-1)
        state = state + keys[:, :, None] * ((v[:, t] - held) * b[:, t][:, :, None])[..., None]
        outs.append((state * queries[:, :, None]).sum(-1))
    return outs, state


def gated_delta(dtype: Any, steps: int, form: str) -> Trial:
    """One batch of 16 heads of keys, 16 of values, 128 wide; `form`: "seq_gated_delta" or "gated_delta_fused_chunk"."""
    heads, width = 16, 128
    q, k = (normal(dtype, 1, steps, heads, width, scale=width**-0.5, seed=i) for i in (0, 1))
    v, state = normal(dtype, 1, steps, heads, width, seed=2), normal(F32, 1, heads, width, width, seed=3, scale=0.1)
    g, b = (np.abs(normal(dtype, 1, steps, heads, seed=i, scale=0.2)).clip(0.05, 1).astype(dtype) for i in (4, 5))
    last = 8 if form == "gated_delta_fused_chunk" else 1
    name = f"{form}_{TYPES[q.dtype]}_{width}_{width}_{heads}_{heads}_{last}"

    def run(library: RawLibrary) -> Array:
        y, out = np.zeros(v.shape, dtype), np.zeros(state.shape, np.float32)
        constants = {"save_state": False} if form == "seq_gated_delta" else {}
        given = dict(enumerate([q, k, v, state, g, b, y, out, np.int32(steps)]))
        rows = width // 8 if form == "gated_delta_fused_chunk" else width
        library.function(name, constants)(given, grid=(32, rows, heads), threadgroup=(32, 4, 1))
        return np.concatenate([y.astype(np.float32).reshape(-1), out.reshape(-1)])

    def joined(outs: Any, last_state: Any, library: Any) -> Any:
        return library.concatenate([library.stack(outs, 1).reshape(-1), last_state.reshape(-1)])

    def exact() -> tuple[Array, Array]:
        given = [wide(a) for a in (q, k, v, g, b, state)]
        total = joined(*_delta(np, *given), np)
        size = joined(*_delta(np, *map(np.abs, given)), np)
        # Each step adds two sums of `width` products and five more roundings; both sizes grow alike.
        error = steps * (2 * width + 8) * U32 * (np.abs(total) + np.abs(size))
        return total, error + (2 * rounding(total, dtype) if dtype != F32 else 0)

    def expected() -> Array:
        def of(*given: Any) -> Any:
            return joined(*_delta(mx, *[a.astype(mx.float32) for a in given]), mx)

        made = on_cpu(of, q, k, v, g, b, state)
        count = v.size
        return np.concatenate([made[:count].astype(dtype).astype(np.float32), made[count:]])

    return Trial(
        "gated_delta_update.h", name, f"{steps} steps", "the recurrence in MLX operations", run, expected, exact,
        "a step's 2 x 128 + 8 roundings in f32 of terms whose sizes add up; in 16 bits the result's rounding",
    )  # fmt: skip


def gemv_wide(dtype: Any, vectors: int) -> Trial:
    """`vectors` rows against one matrix."""
    outer, inner = 40, 512
    matrix, x = normal(dtype, outer, inner), normal(dtype, vectors, inner, seed=1)
    name = f"gemv_wide_{NAMES[matrix.dtype]}_nv{vectors}_kl16"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((vectors, outer), dtype)
        constants = {"gemv_wide_has_batch": False, "gemv_wide_do_axpby": False}
        given: dict[int, Any] = {0: matrix, 1: x, 3: out, 4: np.int32(inner), 5: np.int32(outer), 6: np.int32(vectors)}
        given |= {7: np.int32(inner), 8: np.int32(inner), 11: np.int32(1), 12: np.array([1], np.int32)}
        given |= {13: np.zeros(1, np.int64), 14: np.zeros(1, np.int64)}
        library.function(name, constants)(given, threadgroups=(1, -(-outer // 4), 1), threadgroup=(32, 2, 1))
        return out

    return Trial(
        "gemv.h", name, f"({vectors}, {inner}) @ ({inner}, {outer})", "x @ matrix.T", run,
        lambda: on_cpu(lambda a, b: a @ b.T, x, matrix), summed(x, matrix.T, dtype), REASON,
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [gated_delta(t, 3, "seq_gated_delta") for t in (F32, F16, BF16)]
    made += [gated_delta(t, 16, "gated_delta_fused_chunk") for t in (F32, F16)]
    made += [gemv_wide(t, n) for t in (F16, BF16) for n in (2, 5)]
    return made
