"""Attention: one query at a time in one or two passes, tiles of queries, blocks, gated delta rules."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from trials.trial import BF16, F16, F32, FLOATS, NAMES, U32, Array, Trial, normal, on_cpu, rounding, whole, wide

TYPES = {F32: "float", F16: "float16_t", BF16: "bfloat16_t"}
REASON = "roundings of d products a score, exponentials, n partial sums in f32; in 16 bits, of weights and result"


def exactly(q: Array, k: Array, v: Array, scale: float, mask: Array | None) -> tuple[Array, Array]:
    """softmax(scale q k + mask) v in float64 for q [B, H, L, D], k, v [B, H/g, N, D], and how far f32 may be from it.

    A score is off by (d + 2) u sum|q k|, its exponential as much relatively; the sums over keys and both passes'
    scalings by n u more, of values as large as max|v|.
    """
    repeat = q.shape[1] // k.shape[1]
    keys, values = (np.repeat(wide(x), repeat, 1) for x in (k, v))
    scores = scale * np.einsum("bhqd,bhkd->bhqk", wide(q), keys)
    size = scale * np.einsum("bhqd,bhkd->bhqk", np.abs(wide(q)), np.abs(keys))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + wide(mask)
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - top)
    weights /= weights.sum(-1, keepdims=True)
    exact = np.einsum("bhqk,bhkd->bhqd", weights, values)
    spread = np.where(weights > 0, np.abs(scores - top), 0).max() + np.abs(top[np.isfinite(top)]).max()
    unit = U32 if q.dtype == F32 else rounding(np.ones(1), q.dtype)[0]
    relative = 2 * ((q.shape[-1] + 2) * U32 * size.max() + (spread + 8 + k.shape[2]) * U32)
    relative += (q.dtype != F32) * unit * (2 * size.max() + 4)
    mass = np.einsum("bhqk,bhkd->bhqd", weights, np.abs(values))
    return exact, relative * mass + 2 * rounding(exact, q.dtype) * (q.dtype != F32)


def expected(q: Array, k: Array, v: Array, scale: float, mask: Any = None) -> Callable[[], Array]:
    def of() -> Array:
        if isinstance(mask, np.ndarray):
            return on_cpu(
                lambda a, b, c, m: mx.fast.scaled_dot_product_attention(a, b, c, scale=scale, mask=m), q, k, v, mask
            )
        return on_cpu(lambda a, b, c: mx.fast.scaled_dot_product_attention(a, b, c, scale=scale, mask=mask), q, k, v)

    return of


def vector(dtype: Any, d: int, length: int, mask_kind: str, passes: int) -> Trial:
    """One query, 4 heads of it for 2 of keys."""
    q, k, v = normal(dtype, 1, 4, 1, d), normal(dtype, 1, 2, length, d, seed=1), normal(dtype, 1, 2, length, d, seed=2)
    mask: Array | None = None
    if mask_kind == "bool":
        mask = whole(bool, 0, 4, 1, 4, 1, length)
    elif mask_kind == "float":
        mask = normal(dtype, 1, 4, 1, length, seed=3)
    scale, blocks, type_ = d**-0.5, 32, TYPES[np.dtype(dtype)]
    name = f"sdpa_vector_{'2pass_1_' if passes == 2 else ''}{type_}_{d}_{d}"
    constants: dict[str, Any] = {
        "has_mask": mask is not None, "query_transposed": False, "do_causal": mask_kind == "causal",
        "bool_mask": mask_kind == "bool", "float_mask": mask_kind == "float", "has_sinks": False,
    }  # fmt: skip

    def run(library: RawLibrary) -> Array:
        out = np.zeros(q.shape, dtype)
        strides = [np.uint64(length * d), np.uint64(d)] * 2
        given: dict[str, Any] = {"queries": q, "keys": k, "values": v, "gqa_factor": np.int32(2), "N": np.int32(length)}
        given |= dict(zip(("k_head_stride", "k_seq_stride", "v_head_stride", "v_seq_stride"), strides, strict=True))
        given |= {"scale": np.float32(scale), "bmask": mask if mask_kind == "bool" else None}
        given |= {"fmask": mask if mask_kind == "float" else None, "mask_kv_seq_stride": np.int32(1)}
        given |= {"mask_q_seq_stride": np.int32(length), "mask_head_stride": np.int32(length)}
        if passes == 1:
            kernel = library.function(name, constants)
            given["out"] = out
            kernel({a.location: given.get(a.name) for a in kernel.buffers}, threadgroups=(4, 1, 1), threadgroup=1024)
            return out
        partial = np.zeros((4, blocks, d), dtype)
        sums, maxima = np.zeros((4, blocks), np.float32), np.zeros((4, blocks), np.float32)
        kernel = library.function(name, constants | {"blocks": blocks})
        given |= {"out": partial, "sums": sums, "maxs": maxima}
        buffers = {a.location: given.get(a.name) for a in kernel.buffers}
        kernel(buffers, threadgroups=(2, 1, blocks), threadgroup=(32, 2, 1))
        second = library.function(f"sdpa_vector_2pass_2_{type_}_{d}")
        second([partial, sums, maxima, out, np.int32(blocks)], threadgroups=(4, 1, 1), threadgroup=1024)
        return out

    return Trial(
        "sdpa_vector.h", name, f"d {d}, n {length}, {mask_kind} mask", "fast.scaled_dot_product_attention", run,
        expected(q, k, v, scale, mask), lambda: exactly(q, k, v, scale, mask), REASON,
        also=(f"sdpa_vector_2pass_2_{type_}_{d}",) if passes == 2 else (),
    )  # fmt: skip


def grouped(dtype: Any, group: int, d: int, length: int) -> Trial:
    """`group` query heads share one head of keys and values, in chunks of them."""
    q, k, v = (
        normal(dtype, 1, group, 1, d),
        normal(dtype, 1, 1, length, d, seed=1),
        normal(dtype, 1, 1, length, d, seed=2),
    )
    scale, blocks, type_ = d**-0.5, 32, TYPES[np.dtype(dtype)]
    name = f"sdpa_vector_2pass_1_gqa_{group}_{type_}_{d}_{d}"

    def run(library: RawLibrary) -> Array:
        out, partial = np.zeros(q.shape, dtype), np.zeros((group, blocks, d), dtype)
        sums, maxima = np.zeros((group, blocks), np.float32), np.zeros((group, blocks), np.float32)
        strides = [np.uint64(length * d), np.uint64(d)] * 2
        given = dict(enumerate([q, k, v, partial, sums, maxima, None, np.int32(length), *strides, np.float32(scale)]))
        del given[6]
        library.function(name)(given, threadgroups=(1, 1, blocks), threadgroup=(32, group, 1))
        second = library.function(f"sdpa_vector_2pass_2_{type_}_{d}")
        second([partial, sums, maxima, out, np.int32(blocks)], threadgroups=(group, 1, 1), threadgroup=1024)
        return out

    return Trial(
        "sdpa_vector.h", name, f"d {d}, n {length}", "fast.scaled_dot_product_attention", run, expected(q, k, v, scale),
        lambda: exactly(q, k, v, scale, None), REASON,
        also=(f"sdpa_vector_2pass_2_{type_}_{d}",),
    )  # fmt: skip


def tiled(dtype: Any, queries: int, keys: int, d: int, mask_kind: str) -> Trial:
    """Steel's attention over tiles of 32 queries."""
    q, k, v = (
        normal(dtype, 1, 2, queries, d),
        normal(dtype, 1, 1, keys, d, seed=1),
        normal(dtype, 1, 1, keys, d, seed=2),
    )
    mask: Array | None = None
    if mask_kind == "bool":
        mask = whole(bool, 0, 4, 1, 2, queries, keys)
    elif mask_kind == "float":
        mask = normal(dtype, 1, 2, queries, keys, seed=3)
    elif mask_kind == "causal":
        mask = np.tril(np.ones((queries, keys), bool), keys - queries)
    scale, bq, bk = d**-0.5, 32, 32 if d < 128 else 16
    kind = "bool_" if mask_kind == "bool" else NAMES[q.dtype]
    name = f"steel_attention_{NAMES[q.dtype]}_bq{bq}_bk{bk}_bd{d}_bv{d}_wm4_wn1_mask{kind}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(q.shape, dtype)
        nq, nk = -(-queries // bq), -(-keys // bk)
        strides = [2 * queries * d, queries * d, d, *[keys * d, keys * d, d] * 2, 2 * queries * d, queries * d, d]
        given = struct.pack(
            "6if7i12q", 1, 2, d, queries, keys, 2, scale, nq, nk, queries // bq, keys // bk,
            queries % bq, keys % bk, keys - queries, *strides,
        )  # fmt: skip
        asked = mask_kind in ("bool", "float")
        constants = {"align_Q": queries % bq == 0, "align_K": keys % bk == 0, "has_mask": asked}
        constants |= {"do_causal": mask_kind == "causal", "has_sinks": False, "save_lse": False}
        buffers: dict[int, Any] = {0: q, 1: k, 2: v, 3: out, 4: given}
        if asked:
            buffers |= {5: struct.pack("3q", 2 * queries * keys, queries * keys, keys), 6: mask}
        library.function(name, constants)(buffers, threadgroups=(nq, 2, 1), threadgroup=(32, 4, 1))
        return out

    asked_of_cpu = "causal" if mask_kind == "causal" else mask
    return Trial(
        "steel/attn/kernels/steel_attention.h", name, f"{queries} x {keys}, d {d}, {mask_kind} mask",
        "fast.scaled_dot_product_attention", run, expected(q, k, v, scale, asked_of_cpu),
        lambda: exactly(q, k, v, scale, mask), REASON,
    )  # fmt: skip


def scale_copy(dtype: Any) -> Trial:
    """Rows 3.. of each head of q, scaled."""
    q = normal(dtype, 2, 3, 10, 64)
    name = f"sdpa_blocked_scale_copy_{NAMES[q.dtype]}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((2, 3, 7, 64), dtype)
        strides = np.array([3 * 640, 640, 64], np.int64)
        given = [q, out, np.float32(0.125), strides, np.int32(3), np.int32(7), np.int32(64), np.int32(3)]
        library.function(name)(given, grid=(64, 7, 6), threadgroup=(64, 1, 1))
        return out

    return Trial(
        "sdpa_blocked.h",
        name,
        str(q.shape),
        "0.125 * q[:, :, 3:]",
        run,
        lambda: on_cpu(lambda a: 0.125 * a[:, :, 3:], q),
    )


def causal_mask(dtype: Any) -> Trial:
    scores = normal(dtype, 12, 20)
    name = f"sdpa_blocked_causal_mask_{NAMES[scores.dtype]}"

    def run(library: RawLibrary) -> Array:
        out = scores.copy()
        library.function(name)([out, np.int32(6), np.int32(20)], grid=(6, 12, 1), threadgroup=(6, 1, 1))
        return out

    def of(a: Any) -> Any:
        # The last 6 columns of each tile of 6 rows: above the diagonal stands the least finite number.
        keep = mx.tile(mx.tri(6, 20, 14, dtype=mx.bool_), (2, 1))
        return mx.where(keep, a, mx.array(mx.finfo(a.dtype).min, a.dtype))

    return Trial(
        "sdpa_blocked.h", name, "(12, 20)", "where(causal, scores, finfo.min)", run, lambda: on_cpu(of, scores)
    )


def trials() -> list[Trial]:
    made = [
        vector(t, d, 77, m, 1) for t in FLOATS for d, m in ((64, "no"), (64, "bool"), (128, "float"), (96, "causal"))
    ]
    made += [vector(t, 64, 300, m, 2) for t in FLOATS for m in ("no", "bool", "float")] + [
        vector(F32, 128, 130, "causal", 2)
    ]
    made += [grouped(F32, g, d, 200) for g, d in ((8, 64), (8, 128), (12, 128), (16, 128))] + [grouped(F16, 8, 64, 200)]
    made += [tiled(t, 40, 70, 64, m) for t in FLOATS for m in ("no", "bool", "float", "causal")]
    made += [tiled(F32, 64, 64, 128, "causal"), tiled(F16, 32, 33, 96, "no")]
    made += [scale_copy(t) for t in (F16, BF16)] + [causal_mask(t) for t in (F16, BF16)]
    return made
