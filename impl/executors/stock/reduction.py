"""How MLX launches its reductions of rows and columns (`mlx/backend/metal/reduce.cpp`)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock.dispatch import Array, name_of, row_threads, up


def _reduced_dtype(array: Array, operation: str) -> Any:
    if operation in {"sum", "prod"} and array.dtype.kind in "iub" and array.itemsize < 4:
        return np.uint32 if array.dtype.kind == "u" else np.int32
    return array.dtype


def reduce_rows(library: RawLibrary, x: Array, operation: str = "sum", **launch: Any) -> Array:
    """sum, prod, max or min of the last axis of x [R, V]: row_reduce_small, row_reduce_simple or row_reduce_looped."""
    rows, size = x.shape
    out = np.zeros(rows, _reduced_dtype(x, operation))
    suffix = f"{operation}{name_of(x)}"
    threads = 32 if size <= 512 else 128 if size <= 1024 else min(1024, row_threads(size))
    if size > 64 and rows >= 32:
        kernel = library.function(f"row_reduce_simple_{suffix}")
        grid = (threads, up(rows, 4), 1)
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


def reduce_columns(library: RawLibrary, x: Array, operation: str = "sum", **launch: Any) -> Array:
    """sum, prod, max or min of the middle axis of x [B, R, C]: col_reduce_small, _longcolumn, _2pass or _looped."""
    batch, size, stride = x.shape
    out = np.zeros((batch, stride), _reduced_dtype(x, operation))
    suffix = f"reduce_{operation}{name_of(x)}"
    if size < 32:
        across = min(up(stride, 4), 32)
        shape = {"threadgroups": (up(up(stride, 4), across), batch, 1), "threadgroup": (across, min(8, size), 1)}
        _columns(library, f"col_reduce_small_1_{suffix}", x, out, out.size, **shape, **launch)
    elif stride < 32 and size >= 1024:
        partial = np.zeros((128 if size >= 32768 else 32, *out.shape), out.dtype)
        blocks = len(partial)
        shape = {"threadgroups": (batch, 1, blocks), "threadgroup": (stride, min(32, up(size, blocks)), 1)}
        _columns(library, f"col_reduce_longcolumn_1_{suffix}", x, partial, out.size, **shape, **launch)
        _looped(library, operation, partial.reshape(1, blocks, -1), out, launch)
    elif size > 256 and out.size // 32 < 1024:
        partial = np.zeros((32, *out.shape), out.dtype)
        shape = {"grid": (256 * up(stride, 32), batch * 32, 1), "threadgroup": (256, 1, 1)}
        _columns(library, f"col_reduce_2pass_1_32_32_{suffix}", x, partial, batch, **shape, **launch)
        _looped(library, operation, partial.reshape(1, 32, -1), out, launch)
    else:
        _looped(library, operation, x, out, launch)
    return out


def _columns(library: RawLibrary, name: str, x: Array, out: Array, out_size: int, **launch: Any) -> None:
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


def _looped(library: RawLibrary, operation: str, x: Array, out: Array, launch: Mapping[str, Any]) -> None:
    name = f"col_reduce_looped_1_32_32_reduce_{operation}{name_of(x)}"
    grid = (256 * up(x.shape[2], 32), x.shape[0], 1)
    _columns(library, name, x, out, out.size, grid=grid, threadgroup=(256, 1, 1), **launch)
