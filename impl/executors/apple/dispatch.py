"""How MLX launches its own kernels: which one for which shape, with which buffers, grid and threadgroup.

Written after MLX's `mlx/backend/metal/*.cpp` (0.29 to 0.32), for row-contiguous NumPy arrays (float32, float16,
ml_dtypes.bfloat16). MLX asks the GPU how many threads a kernel may have; here that is always 1,024.
"""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.impl.executors.apple.kernel import AppleLibrary

Array = np.ndarray[Any, Any]

LOOPED_ABOVE = 4096
"""Rows longer than this take the looped kernels of logsumexp, softmax and rms norm (MLX's *_LOOPED_LIMIT)."""

_READS = 4
_SIMD = 32
_MOST_THREADS = 1024
_VECTOR_ABOVE = 1 << 16
_NAMES = {
    np.dtype(np.float32): "float32",
    np.dtype(np.float16): "float16",
    np.dtype(ml_dtypes.bfloat16): "bfloat16",
    np.dtype(np.int32): "int32",
    np.dtype(np.uint32): "uint32",
    np.dtype(np.int64): "int64",
    np.dtype(np.uint8): "uint8",
    np.dtype(np.bool_): "bool_",
}
_QUANTISED_NAMES = {"float32": "float", "float16": "float16_t", "bfloat16": "bfloat16_t"}


def _up(value: int, step: int) -> int:
    return -(-value // step)


def _name(array: Array) -> str:
    """MLX's name of a dtype. ValueError: not one of these kernels' dtypes, or not row-contiguous."""
    if array.dtype not in _NAMES or not array.flags.c_contiguous:
        raise ValueError(
            f"got {array.dtype} of shape {array.shape} and strides {array.strides}, expected a row-contiguous array of "
            f"{', '.join(_NAMES.values())}: give a copy"
        )
    return _NAMES[array.dtype]


def _rows(array: Array) -> tuple[int, int]:
    return array.size // array.shape[-1], array.shape[-1]


def _row_threads(size: int) -> int:
    return _SIMD * _up(_up(size, _READS), _SIMD)


def argmax(library: AppleLibrary, x: Array, *, smallest: bool = False, **launch: Any) -> Array:
    """ids uint32 [...] of the largest (or smallest) of the last axis of x [..., V]: arg_reduce_general."""
    kernel = library.function(f"{'argmin' if smallest else 'argmax'}_{_name(x)}")
    rows, size = _rows(x)
    out = np.zeros(x.shape[:-1], np.uint32)
    threads = _SIMD * _up(min(_up(size, _READS), _MOST_THREADS), _SIMD)
    outer = np.array(x.shape[:-1], np.int32)
    strides = [int(np.prod(outer[i + 1 :], dtype=np.int64)) for i in range(outer.size)]
    buffers = [x, out, outer, np.array(strides, np.int64) * size, np.array(strides, np.int64)]
    if not outer.size:
        buffers[2:] = [np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64)]
    extents = [np.uint64(outer.size), np.int64(1), np.uint64(size)]
    kernel([*buffers, *extents], grid=(threads, rows, 1), threadgroup=(threads, 1, 1), **launch)
    return out


def _by_row(
    library: AppleLibrary, name: str, size: int, rows: int, buffers: list[Any], launch: Mapping[str, Any]
) -> None:
    threads = _row_threads(size) if size <= LOOPED_ABOVE else _MOST_THREADS
    library.function(name)(buffers, grid=(rows * threads, 1, 1), threadgroup=(threads, 1, 1), **launch)


def logsumexp(library: AppleLibrary, x: Array, **launch: Any) -> Array:
    """logsumexp [..., 1] of the last axis of x [..., V], in its dtype: block_logsumexp or looped_logsumexp."""
    rows, size = _rows(x)
    out = np.zeros((*x.shape[:-1], 1), x.dtype)
    name = f"{'looped' if size > LOOPED_ABOVE else 'block'}_logsumexp_{_name(x)}"
    _by_row(library, name, size, rows, [x, out, np.int32(size)], launch)
    return out


def softmax(library: AppleLibrary, x: Array, *, precise: bool = False, **launch: Any) -> Array:
    """softmax over the last axis of x [..., V], in its dtype: block_softmax or looped_softmax.

    `precise`: sums in f32, as mx.softmax(precise=True); float32 is always so.
    """
    rows, size = _rows(x)
    out = np.zeros_like(x)
    kind = "precise_" if precise and x.dtype != np.float32 else ""
    name = f"{'looped' if size > LOOPED_ABOVE else 'block'}_softmax_{kind}{_name(x)}"
    _by_row(library, name, size, rows, [x, out, np.int32(size)], launch)
    return out


def rms_norm(library: AppleLibrary, x: Array, weight: Array, eps: float, **launch: Any) -> Array:
    """x [..., V] normalised by its root mean square and scaled by weight [V], in x's dtype: rms or rms_looped."""
    rows, size = _rows(x)
    out = np.zeros_like(x)
    name = f"rms{'_looped' if size > LOOPED_ABOVE else ''}{_name(x)}"
    buffers = [x, weight, out, np.float32(eps), np.uint32(size), np.uint32(1)]
    _by_row(library, name, size, rows, buffers, launch)
    return out


def _reduced_dtype(array: Array, operation: str) -> Any:
    if operation in {"sum", "prod"} and array.dtype.kind in "iub" and array.itemsize < 4:
        return np.uint32 if array.dtype.kind == "u" else np.int32
    return array.dtype


def reduce_rows(library: AppleLibrary, x: Array, operation: str = "sum", **launch: Any) -> Array:
    """sum, prod, max or min of the last axis of x [R, V]: row_reduce_small, row_reduce_simple or row_reduce_looped."""
    rows, size = x.shape
    out = np.zeros(rows, _reduced_dtype(x, operation))
    suffix = f"{operation}{_name(x)}"
    threads = 32 if size <= 512 else 128 if size <= 1024 else min(1024, _row_threads(size))
    if size > 64 and rows >= 32:
        kernel = library.function(f"row_reduce_simple_{suffix}")
        grid = (threads, _up(rows, 4), 1)
        kernel([x, out, np.uint64(size), np.int64(rows)], grid=grid, threadgroup=(threads, 1, 1), **launch)
        return out
    kept = [np.array([rows], np.int32), np.array([size], np.int64), np.int32(1)]
    reduced = [np.zeros(1, np.int32), np.zeros(1, np.int64), np.int32(0)]
    buffers = [x, out, np.int64(size), np.int64(1), *kept, *reduced]
    if size <= 64:
        kernel = library.function(f"row_reduce_small_1_reduce_{suffix}")
        kernel(buffers, grid=(rows, 1, 1), threadgroup=(min(rows, 1024), 1, 1), **launch)
    else:
        kernel = library.function(f"row_reduce_looped_1_reduce_{suffix}")
        kernel(buffers, grid=(threads, rows, 1), threadgroup=(threads, 1, 1), **launch)
    return out


def reduce_columns(library: AppleLibrary, x: Array, operation: str = "sum", **launch: Any) -> Array:
    """sum, prod, max or min of the middle axis of x [B, R, C]: col_reduce_small, _longcolumn, _2pass or _looped."""
    batch, size, stride = x.shape
    out = np.zeros((batch, stride), _reduced_dtype(x, operation))
    suffix = f"reduce_{operation}{_name(x)}"
    if size < 32:
        across = min(_up(stride, 4), 32)
        shape = {"threadgroups": (_up(_up(stride, 4), across), batch, 1), "threadgroup": (across, min(8, size), 1)}
        _columns(library, f"col_reduce_small_1_{suffix}", x, out, out.size, **shape, **launch)
    elif stride < 32 and size >= 1024:
        partial = np.zeros((128 if size >= 32768 else 32, *out.shape), out.dtype)
        blocks = len(partial)
        shape = {"threadgroups": (batch, 1, blocks), "threadgroup": (stride, min(32, _up(size, blocks)), 1)}
        _columns(library, f"col_reduce_longcolumn_1_{suffix}", x, partial, out.size, **shape, **launch)
        _looped(library, operation, partial.reshape(1, blocks, -1), out, launch)
    elif size > 256 and out.size // 32 < 1024:
        partial = np.zeros((32, *out.shape), out.dtype)
        shape = {"grid": (256 * _up(stride, 32), batch * 32, 1), "threadgroup": (256, 1, 1)}
        _columns(library, f"col_reduce_2pass_1_32_32_{suffix}", x, partial, batch, **shape, **launch)
        _looped(library, operation, partial.reshape(1, 32, -1), out, launch)
    else:
        _looped(library, operation, x, out, launch)
    return out


def _columns(library: AppleLibrary, name: str, x: Array, out: Array, out_size: int, **launch: Any) -> None:
    """Binds by name: the versions number the last buffers differently."""
    batch, size, stride = x.shape
    kernel = library.function(name)
    buffers = {
        "in": x,
        "out": out,
        "reduction_size": np.uint64(size),
        "reduction_stride": np.int64(stride),
        "shape": np.array([batch if batch > 1 else 0], np.int32),
        "strides": np.array([size * stride if batch > 1 else 0], np.int64),
        "ndim": np.int32(batch > 1),
        "reduce_shape": np.array([size], np.int32),
        "reduce_strides": np.array([stride], np.int64),
        "reduce_ndim": np.int32(1),
        "non_col_reductions": np.uint64(1),
        "out_size": np.uint64(out_size),
        "column_offset": np.int64(0),
    }
    kernel({a.location: buffers[a.name] for a in kernel.buffers}, **launch)


def _looped(library: AppleLibrary, operation: str, x: Array, out: Array, launch: Mapping[str, Any]) -> None:
    name = f"col_reduce_looped_1_32_32_reduce_{operation}{_name(x)}"
    grid = (256 * _up(x.shape[2], 32), x.shape[0], 1)
    _columns(library, name, x, out, out.size, grid=grid, threadgroup=(256, 1, 1), **launch)


def _elementwise(library: AppleLibrary, names: tuple[str, str], buffers: list[Any], out: Array, launch: Any) -> Array:
    wide = out.size >= _VECTOR_ABOVE and out.itemsize < 8
    each = 8 // buffers[0].itemsize if wide else 1
    threads = _up(out.size, each)
    grid, threadgroup = (threads, 1, 1), (min(_MOST_THREADS, threads), 1, 1)
    kernel = library.function(names[wide])
    # A kernel of one element takes no size.
    given = [*buffers, out, np.uint32(out.size)][: len(kernel.buffers)]
    kernel(given, grid=grid, threadgroup=threadgroup, **launch)
    return out


def unary(library: AppleLibrary, operation: str, x: Array, *, dtype: Any = None, **launch: Any) -> Array:
    """An operation of MLX ("Exp", "Tanh", "Negative" ...) on every element of x: v_ or, from 65,536 elements, vn_."""
    out = np.zeros(x.shape, dtype or x.dtype)
    tail = f"_{operation}{_name(x)}{_name(out)}"
    return _elementwise(library, (f"v{tail}", f"vn{tail}"), [x], out, launch)


def binary(library: AppleLibrary, operation: str, a: Array, b: Array, *, dtype: Any = None, **launch: Any) -> Array:
    """An operation of MLX ("Add", "Divide", "Maximum" ...) on arrays of one shape, or an array and one element.

    ss, sv, vs, vv, and their n forms from 65,536 elements. A comparison has dtype=bool.
    """
    shape = a.shape if a.size > 1 or b.size == 1 else b.shape
    out = np.zeros(shape, dtype or a.dtype)
    kind = ("s" if a.size == 1 else "v") + ("s" if b.size == 1 else "v")
    tail = f"_{operation}{_name(a)}"
    return _elementwise(library, (f"{kind}{tail}", f"{kind}n{tail}"), [a, b], out, launch)


def matvec(library: AppleLibrary, matrix: Array, vector: Array, *, transposed: bool = False, **launch: Any) -> Array:
    """matrix [N, K] @ vector [K] -> [N], in their dtype: gemv. `transposed`: matrix is [K, N], gemv_t."""
    inner, outer = matrix.shape if transposed else matrix.shape[::-1]
    out = np.zeros(outer, matrix.dtype)
    bm, bn, sm, sn, tm, tn = (_gemv_transposed if transposed else _gemv)(inner, outer)
    head = f"gemv_{'t_' if transposed else ''}{_name(matrix)}"
    kernel = library.function(f"{head}_bm{bm}_bn{bn}_sm{sm}_sn{sn}_tm{tm}_tn{tn}_nc0_axpby0")
    groups = _up(outer, bn * sn * tn if transposed else bm * sm * tm)
    sizes = [np.int32(inner), np.int32(outer), np.int32(matrix.shape[1])]
    batch = [np.int32(1), np.array([1], np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64)]
    buffers = [matrix, vector, None, out, *sizes, None, None, *batch, None, None]
    kernel(buffers, threadgroups=(groups, 1, 1), threadgroup=(32, bn, bm), **launch)
    return out


def _gemv(inner: int, outer: int) -> tuple[int, int, int, int, int, int]:
    bm, bn, sm, sn = (8 if outer >= 4096 else 4), 1, 1, 32
    if inner <= 64:
        bm, sm, sn = 1, 8, 4
    elif inner >= 16 * outer:
        bm, bn = 1, 8
    return bm, bn, sm, sn, 1 if outer < 4 else 4, 4


def _gemv_transposed(inner: int, outer: int) -> tuple[int, int, int, int, int, int]:
    sm, sn = (4, 8) if inner >= 8192 and outer >= 2048 else (8, 4)
    bn = 16 if outer >= 2048 else 4 if outer >= 512 else 2
    return 1, bn, sm, sn, 4, 1 if outer < 4 else 4


def quantized_matvec(
    library: AppleLibrary,
    x: Array,
    weight: Array,
    scales: Array,
    biases: Array,
    *,
    group_size: int,
    bits: int,
    **launch: Any,
) -> Array:
    """x [M, K] @ dequantised(weight [N, K*bits/32] uint32).T -> [M, N]: affine_qmv, or affine_qmv_fast for whole tiles.

    scales, biases [N, K/group_size] of x's dtype, as mx.quantize gives them.
    """
    rows, inner = x.shape
    outer = weight.shape[0]
    out = np.zeros((rows, outer), x.dtype)
    fast = outer % 8 == 0 and inner % 512 == 0
    head = f"affine_qmv{'_fast' if fast else ''}_{_QUANTISED_NAMES[_name(x)]}_gs_{group_size}_b_{bits}_batch_0"
    name = next((n for n in (head, f"{head}_pr_0_hgs_0_r_4") if n in library), head)
    kernel = library.function(name)
    # A single batch leaves the shapes and strides unbound.
    buffers = dict.fromkeys(a.location for a in kernel.buffers)
    buffers |= dict(enumerate([weight, scales, biases, x, out, np.int32(inner), np.int32(outer)]))
    kernel(buffers, threadgroups=(rows, _up(outer, 8), 1), threadgroup=(32, 2, 1), **launch)
    return out
