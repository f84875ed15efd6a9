"""Quantised products whose matrices are chosen by index, split along the inner axis, or shared by several rows."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock.dispatch import up
from trials.quantised import MODES, REASON, TYPES, bound, launch, packed, product, shape_strides, untied
from trials.trial import F16, F32, FLOATS, Array, Trial, in_f32, normal, on_cpu

I32, I64 = np.int32, np.int64


def _kind(mode: str) -> tuple[str, int, int]:
    group, bits = MODES[mode] or (64, 4)
    return ("quantized.h" if mode == "affine" else "fp_quantized.h"), group, bits


def _parts(mode: str, weights: dict[str, Array]) -> list[Array]:
    return [weights[p] for p in (("w", "scales", "biases") if mode == "affine" else ("w", "scales"))]


def chosen(mode: str, form: str, dtype: Any, m: int = 1) -> Trial:
    """One of 3 packed matrices for each of 5 blocks of `m` rows."""
    header, group, bits = _kind(mode)
    k, n = 512 if form.endswith("fast") else 128, 64
    transposed = not form.endswith(("qvm", "_n"))
    x = normal(dtype, 4, m, k)
    weights = packed(mode, dtype, *((n, k) if transposed else (k, n)), group, bits, 3)
    left, right = np.array([3, 0, 1, 1, 2], np.uint32), np.array([0, 2, 1, 2, 0], np.uint32)
    tail = "_alN_true" if form.endswith("qmm_t") else ""
    name = f"{mode}_{form}_{TYPES[x.dtype]}_gs_{group}_b_{bits}{tail}"

    def run(library: RawLibrary) -> Array:
        y = np.zeros((5, m, n), dtype)
        given: dict[str, Any] = {**weights, "x": x, "y": y, "lhs_indices": left, "rhs_indices": right}
        given |= {"in_vec_size": I32(k), "out_vec_size": I32(n), "K": I32(k), "N": I32(n), "M": I32(m)}
        given |= {"x_batch_ndims": I32(1), "w_batch_ndims": I32(1), "batch_ndims": I32(1)}
        given["x_shape"], given["x_strides"] = shape_strides(x)
        given["w_shape"], given["w_strides"] = shape_strides(weights["w"])
        given["s_strides"] = shape_strides(weights["scales"])[1]
        if mode == "affine":
            given["b_strides"] = shape_strides(weights["biases"])[1]
        given |= {"batch_shape": np.array([5], I32), "lhs_strides": np.ones(1, I64), "rhs_strides": np.ones(1, I64)}
        if "qmm" in form:
            launch(library, name, given, (up(n, 32), up(m, 32), 5), (32, 2, 2))
        else:
            each = 8 if transposed else min(group, 32) * 2
            launch(library, name, given, (m, up(n, each), 5), (32, 2, 1))
        return y

    def of(a: Any, i: Any, j: Any, w: Any, s: Any, *b: Any) -> Any:
        return mx.gather_qmm(
            a, w, s, b[0] if b else None, i, j, transpose=transposed, group_size=group, bits=bits, mode=mode
        )

    picked = {p: weights[p][right] for p in ("values", "size")}
    return Trial(
        header, name, f"(5, {m}, {k}) @ (3, {k}, {n})", "gather_qmm", run,
        lambda: on_cpu(of if mode == "affine" else in_f32(of), x, left, right, *_parts(mode, weights)),
        bound(x[left], picked, dtype, transposed), REASON,
    )  # fmt: skip


def sorted_rows(mode: str, dtype: Any, transposed: bool) -> Trial:
    """Rows sorted by their matrix, whose first rows are given."""
    header, group, bits = _kind(mode)
    m, k, n = 40, 128, 64
    x, right = normal(dtype, m, k), np.sort(np.random.default_rng(1).integers(0, 3, m)).astype(np.uint32)
    weights = packed(mode, dtype, *((n, k) if transposed else (k, n)), group, bits, 3)
    offsets = np.searchsorted(right, np.arange(3)).astype(I32)
    tail = "_bm_16_bn_32_bk_32_wm_1_wn_2"
    name = f"{mode}_gather_qmm_rhs_n{'t' if transposed else 'n'}_{TYPES[x.dtype]}_gs_{group}_b_{bits}{tail}"

    def run(library: RawLibrary) -> Array:
        y = np.zeros((m, n), dtype)
        given = {**weights, "x": x, "y": y, "offsets": offsets, "M": I32(m), "N": I32(n), "K": I32(k)}
        kernel = library.function(name, {"align_N": True, "align_K": True})
        buffers = {a.location: (given | {"num_groups": I32(3)}).get(a.name) for a in kernel.buffers}
        kernel(buffers, threadgroups=(up(n, 32), up(m, 16) + 3, 1), threadgroup=(32, 2, 1))
        return y

    def of(a: Any, j: Any, w: Any, s: Any, *b: Any) -> Any:
        bias = b[0] if b else None
        return mx.gather_qmm(
            a[:, None], w, s, bias, rhs_indices=j, transpose=transposed, group_size=group, bits=bits, mode=mode
        )[:, 0]

    def exact() -> tuple[Array, Array]:
        picked = {p: weights[p][right] for p in ("values", "size")}
        total, error = bound(x[:, None], picked, dtype, transposed)()
        return total[:, 0], error[:, 0]

    return Trial(
        header, name, f"({m}, {k}) @ (3, {k}, {n})", "gather_qmm", run,
        lambda: on_cpu(of if mode == "affine" else in_f32(of), x, right, *_parts(mode, weights)), exact, REASON,
    )  # fmt: skip


def split_vector(mode: str, dtype: Any) -> Trial:
    """x times untransposed weights in 8 parts of the inner axis, which are added up after."""
    header, group, bits = _kind(mode)
    k, n, parts = 512, 128, 8
    x, weights = normal(dtype, 1, k), packed(mode, dtype, k, n, group, bits)
    name = f"{mode}_qvm_split_k_{TYPES[x.dtype]}_gs_{group}_b_{bits}_spk_8"

    def run(library: RawLibrary) -> Array:
        partial = np.zeros((parts, 1, n), dtype)
        each = k // parts
        w, s = weights["w"].shape[1], weights["scales"].shape[1]
        given: dict[str, Any] = {**weights, "x": x, "y": partial, "in_vec_size": I32(each), "out_vec_size": I32(n)}
        given |= {"x_batch_ndims": I32(1), "x_shape": np.array([parts, 1, each], I32)}
        given |= {"x_strides": np.array([each, each, 1], I64), "w_batch_ndims": I32(1)}
        given |= {"w_shape": np.array([parts, each, w], I32), "w_strides": np.array([each * w, w, 1], I64)}
        given |= {"s_strides": np.array([each * s, s, 1], I64), "b_strides": np.array([each * s, s, 1], I64)}
        given["final_block_size"] = I32(each)
        launch(library, name, given, (1, up(n, min(group, 32) * 2), parts), (32, 2, 1))
        return partial.astype(np.float32).sum(0).astype(dtype)

    def of(a: Any, w: Any, s: Any, *b: Any) -> Any:
        return mx.quantized_matmul(a, w, s, b[0] if b else None, False, group, bits, mode)

    def exact() -> tuple[Array, Array]:
        total, error = bound(x, weights, dtype, False)()
        # Each part is kept in the dtype.
        return total, error + (dtype != F32) * np.abs(error)

    return Trial(
        header, name, f"(1, {k}) @ ({k}, {n})", "quantized_matmul", run,
        lambda: on_cpu(in_f32(of), x, *_parts(mode, weights)), exact, REASON,
    )  # fmt: skip


def split_matrix(mode: str, dtype: Any, aligned: bool) -> Trial:
    header, group, bits = _kind(mode)
    m, n, k, parts = 40, 64 if aligned else 70, 512, 4
    x, weights = normal(dtype, m, k), packed(mode, dtype, n, k, group, bits)
    name = f"{mode}_qmm_t_splitk_{TYPES[x.dtype]}_gs_{group}_b_{bits}_alN_{str(aligned).lower()}"

    def run(library: RawLibrary) -> Array:
        partial = np.zeros((parts, m, n), np.float32)
        given = {**weights, "x": x, "y": partial, "K": I32(k), "N": I32(n), "M": I32(m)}
        given |= {"k_partition_size": I32(k // parts), "split_k_partition_stride": I32(m * n)}
        launch(library, name, given, (up(n, 32), up(m, 32), parts), (32, 2, 2))
        return partial.sum(0).astype(dtype)

    def of(a: Any, w: Any, s: Any, *b: Any) -> Any:
        return mx.quantized_matmul(a, w, s, b[0] if b else None, True, group, bits, mode)

    return Trial(
        header, name, f"({m}, {k}) @ ({k}, {n})", "quantized_matmul", run,
        lambda: on_cpu(of, x, *_parts(mode, weights)), bound(x, weights, dtype), REASON,
    )  # fmt: skip


def several(mode: str, dtype: Any, m: int) -> Trial:
    """Rows of x that share each read of the weights."""
    _, group, bits = _kind(mode)
    lanes = 8 if mode == "affine" else 16
    tail, rows = f"_nv_{m}_kl_{lanes}_batch_0", 32 // lanes * 2
    return product("qmv_wide", mode, dtype, m, 40, 512, group, bits, tail, (1, up(40, rows), 1), (32, 2, 1))


def round_trip(mode: str, dtype: Any) -> Trial:
    """Quantised and dequantised at once: the same bits as the two kernels after each other."""
    group, bits = MODES[mode] or (0, 0)
    x = untied(normal(dtype, 6, 4 * group, seed=4), mode, group, bits)
    kind = f"{TYPES[x.dtype]}_gs_{group}_b_{bits}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros_like(x)
        kernel = library.function(f"{mode}_quantize_dequantize_{kind}_hgs_false")
        kernel({0: x, 1: None, 2: out}, grid=(x.size, 1, 1), threadgroup=(256, 1, 1))
        again, codes, scales = np.zeros_like(x), np.zeros(x.size * bits // 8, np.uint8), np.zeros(24, np.uint8)
        first = library.function(f"{mode}_quantize_{kind}_hgs_false")
        first({0: x, 1: codes, 2: scales, 3: None}, grid=(x.size, 1, 1), threadgroup=(256, 1, 1))
        second = library.function(f"{mode}_dequantize_{kind}_hgs_false")
        second({0: codes, 1: scales, 2: None, 3: again}, grid=(x.size * bits // 8, 1, 1), threadgroup=(64, 1, 1))
        assert np.array_equal(out, again)
        # The CPU has no negative zero.
        return out + out.dtype.type(0)

    def expected() -> Array:
        def of(a: Any) -> Any:
            parts = mx.quantize(a.astype(mx.float32), group, bits, mode)
            return mx.dequantize(*parts, group_size=group, bits=bits, mode=mode, dtype=a.dtype)

        return on_cpu(of, x)

    return Trial(
        "fp_quantized.h", f"{mode}_quantize_dequantize_{kind}_hgs_false", str(x.shape), "dequantize(quantize)", run,
        expected,
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [
        chosen(m, f, F32) for m in ("affine", "mxfp4", "nvfp4") for f in ("gather_qmv", "gather_qmv_fast", "gather_qvm")
    ]
    made += [
        chosen(m, f, t, 40) for m in ("affine", "mxfp8") for f in ("gather_qmm_t", "gather_qmm_n") for t in (F32, F16)
    ]
    made += [sorted_rows(m, t, turned) for m in ("affine", "mxfp4") for t in (F32, F16) for turned in (True, False)]
    made += [split_vector(m, F32) for m in ("affine", "mxfp4", "nvfp4")]
    made += [split_matrix(m, t, a) for m in ("affine", "mxfp8") for t in (F32, F16) for a in (True, False)]
    made += [several(m, t, n) for m in ("affine", "mxfp4", "nvfp4") for t in FLOATS for n in (2, 5)]
    made += [round_trip(m, t) for m in ("mxfp4", "nvfp4", "mxfp8") for t in (F32, F16)]
    return made
