"""Quantised weights: packing and unpacking, products with vectors and matrices, affine and of 4 and 8 bit floats."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from trials.trial import (
    BF16,
    F16,
    F32,
    FLOATS,
    U32,
    Array,
    Trial,
    in_f32,
    normal,
    on_cpu,
    rounding,
    to_mlx,
    to_numpy,
    wide,
)

TYPES = {F32: "float", F16: "float16_t", BF16: "bfloat16_t"}
MODES = {"affine": None, "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}
REASON = "k roundings of f32 sums and, in 16 bits, two of each dequantised weight; the result's rounding"


@cache
def packed(mode: str, dtype: Any, rows: int, columns: int, group: int, bits: int, *batch: int) -> dict[str, Array]:
    """Weights [.., rows, columns] as mx.quantize packs them on the CPU, and their values in float64."""
    with mx.stream(mx.cpu):
        weight = to_mlx(normal(dtype, *batch, rows, columns, seed=9))
        parts = mx.quantize(weight, group, bits, mode)
        values = mx.dequantize(*parts, group_size=group, bits=bits, mode=mode)
    found = dict(zip(("w", "scales", "biases"), map(to_numpy, parts), strict=False))
    codes = np.unpackbits(found["w"].view(np.uint8).reshape(*batch, rows, -1), axis=-1, bitorder="little")
    whole = codes.reshape(*batch, rows, columns, bits) @ (1 << np.arange(bits))
    if mode == "affine":
        spread = lambda a: np.repeat(wide(a), group, -1)  # noqa: E731
        found["values"] = whole * spread(found["scales"]) + spread(found["biases"])
        found["size"] = np.abs(whole * spread(found["scales"])) + np.abs(spread(found["biases"]))
    else:
        found["values"] = wide(to_numpy(values))
        found["size"] = np.abs(found["values"])
    return found


def launch(
    library: RawLibrary, name: str, given: dict[str, Any], groups: tuple[int, ...], threads: tuple[int, ...]
) -> None:
    """Binds by name; a single batch leaves its shapes and strides unbound."""
    kernel = library.function(name, {c: v for c, v in given.items() if c.startswith("align")})
    kernel({a.location: given.get(a.name) for a in kernel.buffers}, threadgroups=groups, threadgroup=threads)


def bound(
    x: Array, weights: dict[str, Array], dtype: Any, transposed: bool = True
) -> Callable[[], tuple[Array, Array]]:
    def of() -> tuple[Array, Array]:
        values, size = weights["values"], weights["size"]
        if transposed:
            values, size = np.swapaxes(values, -1, -2), np.swapaxes(size, -1, -2)
        exact, terms = wide(x) @ values, np.abs(wide(x)) @ size
        unit = 0.0 if dtype == F32 else rounding(np.ones(1), dtype)[0]
        # MLX's affine kernels add up x beside x times the codes, each with its own roundings.
        return exact, ((2 * x.shape[-1] + 8) * U32 + 3 * unit) * terms + rounding(exact, dtype) * (dtype != F32)

    return of


def _expected(
    x: Array, weights: dict[str, Array], mode: str, group: int, bits: int, transposed: bool = True
) -> Callable[[], Array]:
    parts = [weights["w"], weights["scales"], *([weights["biases"]] if mode == "affine" else [])]

    def of(a: Any, w: Any, s: Any, *b: Any) -> Any:
        return mx.quantized_matmul(a, w, s, b[0] if b else None, transposed, group, bits, mode)

    # MLX's CPU adds up products with untransposed weights in the dtype of x.
    return lambda: on_cpu(of if transposed or mode == "affine" else in_f32(of), x, *parts)


def unsigned_zeros(codes: Array) -> Array:
    """4 bit codes, two a byte, with 0 for -0: MLX's CPU encodes no negative zero, its Metal kernels do."""
    low, high = codes & 15, codes >> 4
    return np.where(low == 8, 0, low) | np.where(high == 8, 0, high) << 4


def product(
    form: str, mode: str, dtype: Any, m: int, n: int, k: int, group: int, bits: int, tail: str,
    groups: tuple[int, ...], threads: tuple[int, ...], transposed: bool = True, header: str = "",
) -> Trial:  # fmt: skip
    """`form` of a kernel on x [m, k] and weights [n, k], or [k, n] where not transposed."""
    x = normal(dtype, m, k)
    weights = packed(mode, dtype, *((n, k) if transposed else (k, n)), group, bits)
    name = f"{mode}_{form}_{TYPES[x.dtype]}_gs_{group}_b_{bits}{tail}"

    def run(library: RawLibrary) -> Array:
        y = np.zeros((m, n), dtype)
        sizes = {"in_vec_size": np.int32(k), "out_vec_size": np.int32(n)}
        sizes |= {"K": np.int32(k), "N": np.int32(n), "M": np.int32(m)}
        launch(library, name, {**weights, "x": x, "y": y, **sizes}, groups, threads)
        return y

    return Trial(
        "quantized.h" if mode == "affine" else "fp_quantized.h", name, f"({m}, {k}) @ ({k}, {n})", "quantized_matmul",
        run,
        _expected(x, weights, mode, group, bits, transposed), bound(x, weights, dtype, transposed), REASON,
    )  # fmt: skip


def qmv(mode: str, dtype: Any, group: int, bits: int, n: int, k: int, m: int = 2) -> Trial:
    fast = n % 8 == 0 and k % 512 == 0
    form = "qmv_fast" if fast else "qmv"
    return product(form, mode, dtype, m, n, k, group, bits, "_batch_0_pr_0_hgs_0_r_4", (m, -(-n // 8), 1), (32, 2, 1))


def qmv_quad(mode: str, dtype: Any, group: int, bits: int, k: int) -> Trial:
    return product("qmv_quad", mode, dtype, 2, 100, k, group, bits, f"_d_{k}_batch_0", (2, 2, 1), (32, 1, 1))


def qvm(mode: str, dtype: Any, group: int, bits: int, n: int, k: int) -> Trial:
    wide_ = min(group, 32) * 2
    return product(
        "qvm", mode, dtype, 2, n, k, group, bits, "_batch_0", (2, -(-n // wide_), 1), (32, 2, 1), transposed=False
    )


def qmm(mode: str, dtype: Any, group: int, bits: int, m: int, n: int, k: int, transposed: bool) -> Trial:
    tail = f"_alN_{'true' if n % 32 == 0 else 'false'}_batch_0" if transposed else "_batch_0"
    form, tiles = f"qmm_{'t' if transposed else 'n'}", (-(-n // 32), -(-m // 32), 1)
    return product(form, mode, dtype, m, n, k, group, bits, tail, tiles, (32, 2, 2), transposed)


def quantize(dtype: Any, group: int, bits: int) -> Trial:
    """Scales and biases may be an ulp apart where a division is rounded; the packed codes are compared."""
    x = normal(dtype, 6, 4 * group, seed=4)
    name = f"affine_quantize_{TYPES[x.dtype]}_gs_{group}_b_{bits}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((6, 4 * group * bits // 8), np.uint8)
        scales, biases = np.zeros((6, 4), dtype), np.zeros((6, 4), dtype)
        threads = x.size // max(group // 32, 1)
        library.function(name)([x, out, scales, biases], grid=(threads, 1, 1), threadgroup=(min(threads, 1024), 1, 1))
        return np.concatenate([out, scales.view(np.uint8).reshape(6, -1), biases.view(np.uint8).reshape(6, -1)], 1)

    def expected() -> Array:
        with mx.stream(mx.cpu):
            parts = [to_numpy(p) for p in mx.quantize(to_mlx(x), group, bits)]
        return np.concatenate([p.view(np.uint8).reshape(6, -1) for p in parts], 1)

    return Trial("quantized.h", name, str(x.shape), "quantize", run, expected)


def dequantize(dtype: Any, group: int, bits: int) -> Trial:
    weights = packed("affine", dtype, 6, 4 * group, group, bits)
    name = f"affine_dequantize_{TYPES[np.dtype(dtype)]}_gs_{group}_b_{bits}"
    each = 8 if bits in (3, 5) else 4 if bits == 6 else 8 // bits

    def run(library: RawLibrary) -> Array:
        out = np.zeros((6, 4 * group), dtype)
        given = [weights["w"].view(np.uint8), weights["scales"], weights["biases"], out]
        library.function(name)(given, grid=(out.size // each, 1, 1), threadgroup=(256, 1, 1))
        return out

    def exact() -> tuple[Array, Array]:
        return weights["values"], 2 * rounding(weights["size"], dtype)

    parts = [weights[n] for n in ("w", "scales", "biases")]
    return Trial(
        "quantized.h", name, str((6, 4 * group)), "dequantize", run,
        lambda: on_cpu(lambda w, s, b: mx.dequantize(w, s, b, group, bits), *parts), exact,
        "the roundings of a product and a sum, or of one fused step",
    )  # fmt: skip


def untied(x: Array, mode: str, group: int, bits: int) -> Array:
    """Without values midway between two codes: MLX's CPU takes the smaller one, its Metal kernels the even one."""
    with mx.stream(mx.cpu):
        scales = mx.quantize(to_mlx(x).astype(mx.float32), group, bits, mode)[1]
        decoded = mx.from_fp8(scales, dtype=mx.float32) if group == 16 else 2.0 ** (scales.astype(mx.float32) - 127)
    ratio = np.abs(wide(x) / np.repeat(wide(to_numpy(decoded)), group, -1))
    return np.where(np.isin(ratio, (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5)) & (bits == 4), x * x.dtype.type(0.875), x)


def fp_quantize(mode: str, dtype: Any) -> Trial:
    group, bits = MODES[mode] or (0, 0)
    x = untied(normal(dtype, 6, 4 * group, seed=4), mode, group, bits)
    name = f"{mode}_quantize_{TYPES[x.dtype]}_gs_{group}_b_{bits}_hgs_false"

    def run(library: RawLibrary) -> Array:
        out, scales = np.zeros((6, 4 * group * bits // 8), np.uint8), np.zeros((6, 4), np.uint8)
        threads = x.size // max(group // 32, 1)
        library.function(name)(
            {0: x, 1: out, 2: scales, 3: None}, grid=(threads, 1, 1), threadgroup=(min(threads, 1024), 1, 1)
        )
        return np.concatenate([unsigned_zeros(out) if bits == 4 else out, scales], 1)

    def expected() -> Array:
        with mx.stream(mx.cpu):
            # In 16 bits MLX's CPU divides by the scale in 16 bits, its Metal kernels in 32.
            parts = [to_numpy(p) for p in mx.quantize(to_mlx(x).astype(mx.float32), group, bits, mode)]
        return np.concatenate([p.view(np.uint8).reshape(6, -1) for p in parts], 1)

    return Trial("fp_quantized.h", name, str(x.shape), f"quantize({mode})", run, expected)


def fp_dequantize(mode: str, dtype: Any) -> Trial:
    group, bits = MODES[mode] or (0, 0)
    weights = packed(mode, dtype, 6, 4 * group, group, bits)
    name = f"{mode}_dequantize_{TYPES[np.dtype(dtype)]}_gs_{group}_b_{bits}_hgs_false"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((6, 4 * group), dtype)
        given = {0: weights["w"].view(np.uint8), 1: weights["scales"], 2: None, 3: out}
        library.function(name)(given, grid=(out.size // (8 // bits), 1, 1), threadgroup=(64, 1, 1))
        return out

    def expected() -> Array:
        given = to_mlx(weights["w"]), to_mlx(weights["scales"])
        with mx.stream(mx.cpu):
            made = mx.dequantize(*given, group_size=group, bits=bits, mode=mode, dtype=to_mlx(np.zeros(1, dtype)).dtype)
            return to_numpy(made)

    return Trial("fp_quantized.h", name, str((6, 4 * group)), f"dequantize({mode})", run, expected)


def shape_strides(a: Array) -> tuple[Array, Array]:
    return np.array(a.shape, np.int32), np.array([s // a.itemsize for s in a.strides], np.int64)


def gathered(dtype: Any, form: str) -> Trial:
    """One of 3 packed matrices for each of 5 rows."""
    k, n, group, bits = 128, 64, 64, 4
    transposed = form != "gather_qvm"
    x = normal(dtype, 4, 1, k)
    weights = packed("affine", dtype, *((n, k) if transposed else (k, n)), group, bits, 3)
    left, right = np.array([3, 0, 1, 1, 2], np.uint32), np.array([0, 2, 1, 2, 0], np.uint32)
    name = f"affine_{form}_{TYPES[x.dtype]}_gs_{group}_b_{bits}"

    def run(library: RawLibrary) -> Array:
        y = np.zeros((5, 1, n), dtype)
        given: dict[str, Any] = {**weights, "x": x, "y": y, "lhs_indices": left, "rhs_indices": right}
        given |= {
            "in_vec_size": np.int32(k),
            "out_vec_size": np.int32(n),
            "K": np.int32(k),
            "N": np.int32(n),
            "M": np.int32(1),
        }
        given |= {"x_batch_ndims": np.int32(1), "w_batch_ndims": np.int32(1), "batch_ndims": np.int32(1)}
        given["x_shape"], given["x_strides"] = shape_strides(x)
        given["w_shape"], given["w_strides"] = shape_strides(weights["w"])
        given["s_strides"], given["b_strides"] = (shape_strides(weights[p])[1] for p in ("scales", "biases"))
        given |= {
            "batch_shape": np.array([5], np.int32),
            "lhs_strides": np.array([1], np.int64),
            "rhs_strides": np.array([1], np.int64),
        }
        groups = (1, -(-n // (8 if transposed else 64)), 5)
        launch(library, name, given, groups, (32, 2, 1))
        return y

    def expected() -> Array:
        parts = [weights[p] for p in ("w", "scales", "biases")]
        return on_cpu(
            lambda a, w, s, b, i, j: mx.gather_qmm(a, w, s, b, i, j, transpose=transposed, group_size=group, bits=bits),
            x, *parts, left, right,
        )  # fmt: skip

    picked = {p: weights[p][right] for p in ("values", "size")}
    return Trial(
        "quantized.h", name, f"(5, 1, {k}) @ (3, {k}, {n})", "gather_qmm", run, expected,
        bound(x[left], picked, dtype, transposed), REASON,
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [qmv("affine", t, 64, b, n, k) for t in FLOATS for b in (2, 4, 8) for n, k in ((48, 512), (33, 128))]
    made += [qmv("affine", F32, g, b, 40, 512) for g in (32, 128) for b in (3, 5, 6)]
    made += [qmv_quad("affine", t, 64, 4, k) for t in FLOATS for k in (64, 128)]
    made += [qvm("affine", t, 64, b, 128, 96) for t in FLOATS for b in (4, 8)]
    made += [qmm("affine", t, 64, 4, 40, n, 128, True) for t in FLOATS for n in (64, 70)]
    made += [qmm("affine", t, 64, b, 40, 64, 96, False) for t in FLOATS for b in (4, 8)]
    made += [quantize(F32, g, b) for g in (32, 64) for b in (2, 3, 4, 5, 6, 8)] + [
        quantize(t, 64, 4) for t in (F16, BF16)
    ]
    made += [dequantize(t, 64, b) for t in FLOATS for b in (2, 3, 4, 5, 6, 8)]
    for mode in ("mxfp4", "nvfp4", "mxfp8"):
        group, bits = MODES[mode] or (0, 0)
        made += [qmv(mode, t, group, bits, 48, 512) for t in FLOATS] + [qmv(mode, F16, group, bits, 33, 128)]
        made += [qvm(mode, F32, group, bits, 128, 96), qmv_quad(mode, F32, group, bits, 64)]
        made += [qmm(mode, t, group, bits, 40, 64, 128, transposed) for t in (F32, F16) for transposed in (True, False)]
        made += [fp_quantize(mode, t) for t in FLOATS] + [fp_dequantize(mode, t) for t in FLOATS]
    made += [gathered(t, f) for t in FLOATS for f in ("gather_qmv", "gather_qvm")]
    return made
