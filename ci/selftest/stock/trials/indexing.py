"""Gathers, scatters, updates of slices: MLX compiles these when they are asked for, so that its library holds none."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock.library import StockLibrary, TextLibrary
from trials.trial import BF16, F16, F32, METAL, NAMES, Array, Trial, normal, on_cpu, whole

I32, I64 = np.int32, np.int64


def metal(dtype: Any) -> str:
    return METAL[NAMES[np.dtype(dtype)]]


def strides(array: Array) -> Array:
    return np.array([s // array.itemsize for s in array.strides], I64)


def instance(library: RawLibrary, header: str | tuple[str, ...], function: str, *arguments: str) -> Any:
    assert isinstance(library, StockLibrary)
    return library.instantiate(header, function, *arguments)


def _trial(
    header: str,
    kernel: str,
    shapes: str,
    operation: str,
    run: Callable[[RawLibrary], Array],
    expected: Callable[[], Array],
) -> Trial:
    return Trial(header, kernel, shapes, operation, run, expected, doors="text")


def gather_front(dtype: Any, index: Any) -> Trial:
    source, ids = normal(dtype, 9, 20), whole(index, -9 if np.dtype(index).kind == "i" else 0, 9, 13)

    def run(library: RawLibrary) -> Array:
        out = np.zeros((13, 20), dtype)
        kernel = instance(library, "indexing/gather_front.h", "gather_front", metal(dtype), metal(index), "int", "2")
        kernel([source, ids, out, I64(20), I32(9)], grid=(10, 13, 1), threadgroup=(10, 13, 1))
        return out

    return _trial(
        "indexing/gather_front.h", f"gather_front<{metal(dtype)}, {metal(index)}>", "(9, 20)[13]", "take", run,
        lambda: on_cpu(lambda a, i: mx.take(a, i, axis=0), source, ids),
    )  # fmt: skip


def along(dtype: Any, index: Any, contiguous: bool) -> Trial:
    """take_along_axis on the middle of three axes."""
    source = normal(dtype, 4, 5, 6) if contiguous else normal(dtype, 6, 5, 4).T
    ids = whole(index, -5 if np.dtype(index).kind == "i" else 0, 5, 4, 3, 6)
    flag = "true" if contiguous else "false"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(ids.shape, dtype)
        arguments = (metal(dtype), metal(index), "int", flag, "true")
        kernel = instance(library, "indexing/gather_axis.h", "gather_axis", *arguments)
        s, i = strides(source), strides(ids)
        given = [source, ids, out, np.array([4, 6], I32), s[[0, 2]], i[[0, 2]], np.uint64(2), I32(1), I32(5)]
        kernel([*given, np.uint64(s[1]), np.uint64(i[1])], grid=(6, 3, 4), threadgroup=(6, 3, 4))
        return out

    return _trial(
        "indexing/gather_axis.h", f"gather_axis<{metal(dtype)}, {metal(index)}, {flag}>", "(4, 5, 6)",
        "take_along_axis", run,
        lambda: on_cpu(lambda a, i: mx.take_along_axis(a, i, axis=1), np.ascontiguousarray(source), ids),
    )  # fmt: skip


def put_along(dtype: Any, add: bool) -> Trial:
    """Sums are of whole numbers, whose order does not matter."""
    base, updates = whole(dtype, -9, 9, 4, 5, 6), whole(dtype, -9, 9, 4, 3, 6, seed=1)
    ids = (
        whole("int32", -5, 5, 4, 3, 6) if add else np.broadcast_to(np.array([0, 3, -1], I32)[:, None], (4, 3, 6)).copy()
    )
    operation = f"Sum<{metal(dtype)}>" if add else "None"

    def run(library: RawLibrary) -> Array:
        out = base.copy()
        headers = ("reduce_utils.h", "indexing/scatter_axis.h")
        kernel = instance(library, headers, "scatter_axis", metal(dtype), "int32_t", "int", operation, "true", "true")
        s = strides(updates)
        given = [updates, ids, out, np.array([4, 6], I32), s[[0, 2]], s[[0, 2]], np.uint64(2), I32(1), I32(5)]
        kernel([*given, np.uint64(6), np.uint64(6)], grid=(6, 3, 4), threadgroup=(6, 3, 4))
        return out

    def of(a: Any, i: Any, u: Any) -> Any:
        if not add:
            return mx.put_along_axis(a, i, u, axis=1)
        i = mx.where(i < 0, i + 5, i)
        rows, columns = mx.arange(4)[:, None, None], mx.arange(6)[None, None]
        return a.at[rows, i, columns].add(u)

    return _trial(
        "indexing/scatter_axis.h", f"scatter_axis<{metal(dtype)}, {operation}>", "(4, 5, 6)",
        "at[].add" if add else "put_along_axis", run, lambda: on_cpu(of, base, ids, updates),
    )  # fmt: skip


def masked_assign(dtype: Any) -> Trial:
    mask, source, base = whole(bool, 0, 2, 3, 40), normal(dtype, 120), normal(dtype, 3, 40, seed=1)
    offsets = (np.cumsum(mask.reshape(-1)) - mask.reshape(-1)).astype(np.uint32)

    def run(library: RawLibrary) -> Array:
        out = base.copy()
        kernel = instance(library, "indexing/masked_scatter.h", "masked_assign_impl", metal(dtype), "true")
        given = [mask, offsets, source, out, np.array([120], I32), np.array([1], I64), I32(1), I64(120), I64(120)]
        kernel(given, grid=(120, 1, 1), threadgroup=(120, 1, 1))
        return out

    def expected() -> Array:
        def of(a: Any, m: Any, s: Any) -> Any:
            a[m] = s[: int(m.sum())]
            return a

        return on_cpu(of, base, mask, source)

    return _trial(
        "indexing/masked_scatter.h", f"masked_assign_impl<{metal(dtype)}>", "(3, 40)", "a[mask] = source", run, expected
    )


def slice_update(dtype: Any, operation: str, contiguous: bool) -> Trial:
    """Rows 2..5 and columns 1, 4, 7, 10 of a matrix, or whole rows."""
    base, updates = whole(dtype, -9, 9, 7, 12), whole(dtype, -9, 9, 3, 12 if contiguous else 4, seed=1)
    flag = "true" if contiguous else "false"

    def run(library: RawLibrary) -> Array:
        out = base.copy()
        headers = ("reduce_utils.h", "indexing/scatter.h")
        arguments = (metal(dtype), "int", f"{operation}<{metal(dtype)}>", flag, "true", "false", "1", "2")
        kernel = instance(library, headers, "slice_update_op_impl", *arguments)
        across = np.array([12, 1 if contiguous else 3], I64)
        given = [updates, out, np.array(updates.shape, I32), strides(updates), I32(2), I64(updates.size)]
        kernel([*given, across, I64(24 if contiguous else 25)], grid=(updates.shape[1], 3, 1), threadgroup=(4, 3, 1))
        return out

    def of(a: Any, u: Any) -> Any:
        at = a.at[2:5] if contiguous else a.at[2:5, 1:12:3]
        return {"Sum": at.add, "Prod": at.multiply, "Max": at.maximum, "Min": at.minimum}[operation](u)

    return _trial(
        "indexing/scatter.h", f"slice_update_op_impl<{metal(dtype)}, {operation}, {flag}>", str(updates.shape),
        "at[2:5]", run, lambda: on_cpu(of, base, updates),
    )  # fmt: skip


@cache
def _wrapper(header: str, kernel: str) -> TextLibrary:
    includes = "".join(f'#include "mlx/backend/metal/kernels/{h}"\n' for h in ("utils.h", "reduce_utils.h", header))
    return TextLibrary(includes + kernel)


def gather(dtype: Any) -> Trial:
    """Two index arrays of two axes: the body of gather.h behind a kernel, as MLX writes one for each number of them."""
    source = normal(dtype, 5, 6, 7)
    rows, columns = whole("int32", -5, 5, 3, 4), whole("int32", 0, 6, 3, 4, seed=1)
    kernel = f"""
[[kernel]] void gathered(
    const device {metal(dtype)}* source [[buffer(0)]], device {metal(dtype)}* out [[buffer(1)]],
    const constant int* shape [[buffer(2)]], const constant int64_t* strides [[buffer(3)]],
    const constant size_t& ndim [[buffer(4)]], const constant int* sizes [[buffer(5)]],
    const constant int* axes [[buffer(6)]], const constant int* id_shapes [[buffer(7)]],
    const constant int64_t* id_strides [[buffer(8)]], const constant bool* whole [[buffer(9)]],
    const constant int& id_ndim [[buffer(10)]], const device int* first [[buffer(20)]],
    const device int* second [[buffer(21)]], uint3 index [[thread_position_in_grid]],
    uint3 grid [[threads_per_grid]]) {{
  Indices<int, 2> ids{{{{first, second}}, id_shapes, id_strides, whole, id_ndim}};
  return gather_impl<{metal(dtype)}, int, 2, 2, int>(
      source, out, shape, strides, ndim, sizes, axes, ids, index, grid);
}}
"""

    def run(library: RawLibrary) -> Array:
        out = np.zeros((3, 4, 7), dtype)
        given = [source, out, np.array(source.shape, I32), strides(source), np.uint64(3), np.array([1, 1, 7], I32)]
        given += [np.array([0, 1], I32), np.array([3, 4] * 2, I32), np.array([4, 1] * 2, I64), np.ones(2, bool), I32(2)]
        buffers = dict(enumerate(given)) | {20: rows, 21: columns}
        _wrapper("indexing/gather.h", kernel).function("gathered")(buffers, grid=(3, 4, 7), threadgroup=(3, 4, 7))
        return out

    return _trial(
        "indexing/gather.h", f"gather_impl<{metal(dtype)}>", "(5, 6, 7)[3x4, 3x4]", "a[i, j]", run,
        lambda: on_cpu(lambda a, i, j: a[i, j], source, rows, columns),
    )  # fmt: skip


def scatter(dtype: Any, operation: str) -> Trial:
    """Updates of whole rows at 6 ids, some of them twice but where the last would win."""
    # A product with a zero is left alone by the kernel, whose sign the CPU may change.
    low = 1 if operation == "Prod" else -9
    base, updates = whole(dtype, low, 9, 8, 5), whole(dtype, low, 9, 6, 5, seed=1)
    ids = np.array([1, -1, 4, 0, 2, 6] if operation == "None" else [1, -1, 4, 1, 4, 7], I32)
    op = operation if operation == "None" else f"{operation}<{metal(dtype)}>"
    kernel = f"""
[[kernel]] void scattered(
    const device {metal(dtype)}* updates [[buffer(1)]], device mlx_atomic<{metal(dtype)}>* out [[buffer(2)]],
    const constant int* shape [[buffer(3)]], const constant int64_t* strides [[buffer(4)]],
    const constant size_t& ndim [[buffer(5)]], const constant size_t& size [[buffer(6)]],
    const constant int* out_shape [[buffer(7)]], const constant int64_t* out_strides [[buffer(8)]],
    const constant size_t& out_ndim [[buffer(9)]], const constant int* axes [[buffer(10)]],
    const constant int* id_shapes [[buffer(11)]], const constant int64_t* id_strides [[buffer(12)]],
    const constant bool* whole [[buffer(13)]], const constant int& id_ndim [[buffer(14)]],
    const constant size_t& id_size [[buffer(15)]], const device int* first [[buffer(20)]],
    uint2 gid [[thread_position_in_grid]]) {{
  Indices<int, 1> ids{{{{first}}, id_shapes, id_strides, whole, id_ndim}};
  return scatter_impl<{metal(dtype)}, int, {op}, 1, true, 1, int>(
      updates, out, shape, strides, ndim, size, out_shape, out_strides, out_ndim, axes, id_size, ids, gid);
}}
"""

    def run(library: RawLibrary) -> Array:
        out = base.copy()
        given = {1: updates, 2: out, 3: np.array([6, 1, 5], I32), 4: np.array([5, 5, 1], I64), 5: np.uint64(3)}
        given |= {6: np.uint64(5), 7: np.array(base.shape, I32), 8: strides(base), 9: np.uint64(2)}
        given |= {10: np.array([0], I32), 11: np.array([6], I32), 12: np.array([1], I64), 13: np.ones(1, bool)}
        given |= {14: I32(1), 15: np.uint64(6), 20: ids}
        _wrapper("indexing/scatter.h", kernel).function("scattered")(given, grid=(5, 6, 1), threadgroup=(5, 6, 1))
        return out

    def of(a: Any, i: Any, u: Any) -> Any:
        at = a.at[i]
        if operation == "None":
            a[i] = u
            return a
        return {"Sum": at.add, "Prod": at.multiply, "Max": at.maximum, "Min": at.minimum}[operation](u)

    return _trial(
        "indexing/scatter.h", f"scatter_impl<{metal(dtype)}, {operation}>", "(8, 5)[6]", f"a[i] {operation.lower()}",
        run,
        lambda: on_cpu(of, base, ids, updates),
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [gather_front(t, i) for t in (F32, F16, "int8") for i in ("int32", "uint32")]
    made += [along(t, i, c) for t in (F32, BF16) for i in ("int32", "uint32") for c in (True, False)]
    made += [put_along(t, add) for t in (F32, "int32", F16) for add in (False, True)]
    made += [masked_assign(t) for t in (F32, BF16, "uint8")]
    made += [
        slice_update(t, o, c) for t in (F32, "int32") for o in ("Sum", "Prod", "Max", "Min") for c in (True, False)
    ]
    made += [gather(t) for t in (F32, F16, "int64")]
    made += [scatter(t, o) for t in (F32, "int32", F16) for o in ("None", "Sum", "Prod", "Max", "Min")]
    return made
