"""How MLX launches its own kernels: which one for which shape, with which buffers, grid and threadgroup.

Written after MLX's `mlx/backend/metal/*.cpp` (0.29 to 0.32), for row-contiguous NumPy arrays (float32, float16,
ml_dtypes.bfloat16). MLX asks the GPU how many threads a kernel may have; here that is always 1,024.
"""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary

Array = np.ndarray[Any, Any]

LOOPED_ABOVE = 4096
"""Rows longer than this take the looped kernels of logsumexp, softmax and rms norm (MLX's *_LOOPED_LIMIT)."""

_READS = 4
_SIMD = 32
_MOST_THREADS = 1024
_VECTOR_ABOVE = 1 << 16
_NAMES = {
    np.dtype(ml_dtypes.bfloat16): "bfloat16",
    np.dtype(np.bool_): "bool_",
    **{np.dtype(name): name for name in ("float32", "float16", "complex64")},
    **{np.dtype(f"{sign}int{size}"): f"{sign}int{size}" for sign in ("", "u") for size in (8, 16, 32, 64)},
}


def up(value: int, step: int) -> int:
    return -(-value // step)


def name_of(array: Array) -> str:
    """MLX's name of a dtype. ValueError: not one of these kernels' dtypes, or not row-contiguous."""
    if array.dtype not in _NAMES or not array.flags.c_contiguous:
        raise ValueError(
            f"got {array.dtype} of shape {array.shape} and strides {array.strides}, expected a row-contiguous array of "
            f"{', '.join(_NAMES.values())}: give a copy"
        )
    return _NAMES[array.dtype]


def _rows(array: Array) -> tuple[int, int]:
    return array.size // array.shape[-1], array.shape[-1]


def row_threads(size: int) -> int:
    return _SIMD * up(up(size, _READS), _SIMD)


def argmax(library: RawLibrary, x: Array, *, smallest: bool = False, **launch: Any) -> Array:
    """ids uint32 [...] of the largest (or smallest) of the last axis of x [..., V]: arg_reduce_general."""
    kernel = library.function(f"{'argmin' if smallest else 'argmax'}_{name_of(x)}")
    rows, size = _rows(x)
    out = np.zeros(x.shape[:-1], np.uint32)
    threads = _SIMD * up(min(up(size, _READS), _MOST_THREADS), _SIMD)
    outer = np.array(x.shape[:-1], np.int32)
    strides = [int(np.prod(outer[i + 1 :], dtype=np.int64)) for i in range(outer.size)]
    buffers = [x, out, outer, np.array(strides, np.int64) * size, np.array(strides, np.int64)]
    if not outer.size:
        buffers[2:] = [np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64)]
    extents = [np.uint64(outer.size), np.int64(1), np.uint64(size)]
    kernel([*buffers, *extents], grid=(threads, rows, 1), threadgroup=(threads, 1, 1), **launch)
    return out


def _by_row(
    library: RawLibrary, name: str, size: int, rows: int, buffers: list[Any], launch: Mapping[str, Any]
) -> None:
    threads = row_threads(size) if size <= LOOPED_ABOVE else _MOST_THREADS
    library.function(name)(buffers, grid=(rows * threads, 1, 1), threadgroup=(threads, 1, 1), **launch)


def logsumexp(library: RawLibrary, x: Array, **launch: Any) -> Array:
    """logsumexp [..., 1] of the last axis of x [..., V], in its dtype: block_logsumexp or looped_logsumexp."""
    rows, size = _rows(x)
    out = np.zeros((*x.shape[:-1], 1), x.dtype)
    name = f"{'looped' if size > LOOPED_ABOVE else 'block'}_logsumexp_{name_of(x)}"
    _by_row(library, name, size, rows, [x, out, np.int32(size)], launch)
    return out


def softmax(library: RawLibrary, x: Array, *, precise: bool = False, **launch: Any) -> Array:
    """softmax over the last axis of x [..., V], in its dtype: block_softmax or looped_softmax.

    `precise`: sums in f32, as mx.softmax(precise=True); float32 is always so.
    """
    rows, size = _rows(x)
    out = np.zeros_like(x)
    kind = "precise_" if precise and x.dtype != np.float32 else ""
    name = f"{'looped' if size > LOOPED_ABOVE else 'block'}_softmax_{kind}{name_of(x)}"
    _by_row(library, name, size, rows, [x, out, np.int32(size)], launch)
    return out


def rms_norm(library: RawLibrary, x: Array, weight: Array, eps: float, **launch: Any) -> Array:
    """x [..., V] normalised by its root mean square and scaled by weight [V], in x's dtype: rms or rms_looped."""
    rows, size = _rows(x)
    out = np.zeros_like(x)
    name = f"rms{'_looped' if size > LOOPED_ABOVE else ''}{name_of(x)}"
    buffers = [x, weight, out, np.float32(eps), np.uint32(size), np.uint32(1)]
    _by_row(library, name, size, rows, buffers, launch)
    return out


def _elementwise(library: RawLibrary, names: tuple[str, str], buffers: list[Any], out: Array, launch: Any) -> Array:
    if not out.size:
        return out
    wide = out.size >= _VECTOR_ABOVE and out.itemsize < 8
    each = 8 // buffers[0].itemsize if wide else 1
    threads = up(out.size, each)
    grid, threadgroup = (threads, 1, 1), (min(_MOST_THREADS, threads), 1, 1)
    kernel = library.function(names[wide])
    # A kernel of one element takes no size.
    given = [*buffers, out, np.uint32(out.size)][: len(kernel.buffers)]
    kernel(given, grid=grid, threadgroup=threadgroup, **launch)
    return out


def unary(library: RawLibrary, operation: str, x: Array, *, dtype: Any = None, **launch: Any) -> Array:
    """An operation of MLX ("Exp", "Tanh", "Negative" ...) on every element of x: v_ or, from 65,536 elements, vn_."""
    out = np.zeros(x.shape, dtype or x.dtype)
    tail = f"_{operation}{name_of(x)}{name_of(out)}"
    return _elementwise(library, (f"v{tail}", f"vn{tail}"), [x], out, launch)


def binary(library: RawLibrary, operation: str, a: Array, b: Array, *, dtype: Any = None, **launch: Any) -> Array:
    """An operation of MLX ("Add", "Divide", "Maximum" ...) on arrays of one shape, or an array and one element.

    ss, sv, vs, vv, and their n forms from 65,536 elements. A comparison has dtype=bool.
    """
    shape = a.shape if a.size > 1 or b.size == 1 else b.shape
    out = np.zeros(shape, dtype or a.dtype)
    kind = ("s" if a.size == 1 else "v") + ("s" if b.size == 1 else "v")
    tail = f"_{operation}{name_of(a)}"
    return _elementwise(library, (f"{kind}{tail}", f"{kind}n{tail}"), [a, b], out, launch)
