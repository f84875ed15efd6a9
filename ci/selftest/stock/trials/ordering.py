"""Scans, sorts, partitions and searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from trials.trial import (
    F16,
    F32,
    FLOATS,
    NAMES,
    U32,
    Array,
    Trial,
    normal,
    on_cpu,
    rounding,
    whole,
    wide,
)

SCANS: dict[str, Callable[..., Any]] = {
    "sum": mx.cumsum, "prod": mx.cumprod, "max": mx.cummax, "min": mx.cummin, "logaddexp": mx.logcumsumexp,
}  # fmt: skip


def _scanned(library: RawLibrary, name: str, x: Array, out: Array, axis: int) -> None:
    size, reads = x.shape[axis], 4 if x.itemsize <= 4 else 2
    if axis == x.ndim - 1:
        threads = min(1024, 32 * -(-size // (32 * reads)))
        if 1024 * reads < size <= 2048 * reads:
            threads = min(1024, 32 * -(-(size // 2) // (32 * reads)))
        buffers = [x, out, np.uint64(size)]
        library.function(name)(buffers, grid=(threads, x.size // size, 1), threadgroup=threads)
        return
    stride = int(np.prod(x.shape[axis + 1 :]))
    blocks = -(-stride // 32)
    threads = 32 // reads * 32
    grid = (threads, x.size // (size * stride) * blocks, 1)
    library.function(name)(
        [x, out, np.uint64(size), np.uint64(stride), np.uint64(blocks)], grid=grid, threadgroup=threads
    )


def scan(
    operation: str, dtype: Any, shape: tuple[int, ...], axis: int = -1, inclusive: bool = True, reverse: bool = False
) -> Trial:
    axis %= len(shape)
    x = (
        normal(dtype, *shape)
        if operation in ("max", "min", "logaddexp")
        else whole(dtype, 1 if operation == "prod" else 0, 2, *shape)
    )
    if operation == "sum" and x.itemsize > 1:
        x = (
            x
            * (np.arange(shape[axis]) % max(shape[axis] // 60, 1) == 0).reshape(
                [-1 if i == axis else 1 for i in range(len(shape))]
            )
        ).astype(dtype)
    out_type = "int32" if x.dtype == bool and operation == "sum" else dtype
    form = "contig" if axis == len(shape) - 1 else "strided"
    direction = f"{'reverse_' if reverse else ''}{'in' if inclusive else 'ex'}clusive"
    name = f"{form}_scan_{direction}_{operation}_{NAMES[x.dtype]}_{NAMES[np.dtype(out_type)]}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(shape, out_type)
        _scanned(library, name, x, out, axis)
        return out

    def expected() -> Array:
        return on_cpu(lambda a: SCANS[operation](a, axis=axis, reverse=reverse, inclusive=inclusive), x)

    def bound() -> tuple[Array, Array]:
        exact = np.logaddexp.accumulate(wide(x), axis)
        unit = U32 if dtype == F32 else rounding(np.ones(1), dtype)[0]
        # Each of n steps rounds a value of at most max|x| + log n, and calls exp and log1p.
        top = np.abs(wide(x)).max() + np.log(shape[axis])
        return exact, np.full(shape, shape[axis] * 8 * unit * top)

    return Trial(
        "scan.h", name, f"{shape} axis {axis}", f"cumulative {operation}", run, expected,
        bound if operation == "logaddexp" else None, "n steps of 8 roundings of values up to max|x| + log n",
    )  # fmt: skip


def _bn(size: int, itemsize: int) -> int:
    wanted = -(-size // 4)
    found = next((n for n in (32, 64, 128, 256) if wanted <= n), 512)
    return 256 if found == 512 and itemsize > 4 else found


def _values(dtype: Any, *shape: int) -> Array:
    x = normal(dtype, *shape) if np.dtype(dtype).kind in "fV" else whole(dtype, 0, 100, *shape)
    if np.dtype(dtype).kind == "f":
        x[..., shape[-1] // 2] = np.nan
        x[..., 0] = np.inf
    return x


def block_sort(dtype: Any, size: int, argsort: bool, axis: int = 1) -> Trial:
    x = _values(dtype, 3, size)
    x = np.ascontiguousarray(x.T) if axis == 0 else x
    out_type = "uint32" if argsort else dtype
    form = f"c{'arg_' if argsort else '_'}block_sort"
    name = f"{form}_{NAMES[x.dtype]}_{NAMES[np.dtype(out_type)]}_bn{_bn(size, x.itemsize)}_tn4"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(x.shape, out_type)
        along, across = (1, size) if axis == 1 else (3, 1)
        given = [x, out, np.int32(size), np.int32(along), np.int32(along), np.int32(across), np.int32(across)]
        library.function(name)(given, threadgroups=(1, 3, 1), threadgroup=_bn(size, x.itemsize))
        return out

    of = mx.argsort if argsort else mx.sort
    return Trial(
        "sort.h",
        name,
        f"{x.shape} axis {axis}",
        "argsort" if argsort else "sort",
        run,
        lambda: on_cpu(lambda a: of(a, axis=axis), x),
    )


def general_sort(dtype: Any, argsort: bool) -> Trial:
    """The middle axis of three: the kernel walks the others by their strides."""
    x = np.ascontiguousarray(_values(dtype, 4, 5, 70).transpose(0, 2, 1))
    out_type = "uint32" if argsort else dtype
    name = f"nc{'arg_' if argsort else '_'}block_sort_{NAMES[x.dtype]}_{NAMES[np.dtype(out_type)]}_bn32_tn4"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(x.shape, out_type)
        strides = np.array([350, 1], np.int64)
        given = [
            x,
            out,
            np.int32(70),
            np.int32(5),
            np.int32(5),
            np.int32(2),
            np.array([4, 5], np.int32),
            strides,
            strides,
        ]
        library.function(name)(given, threadgroups=(1, 20, 1), threadgroup=32)
        return out

    of = mx.argsort if argsort else mx.sort
    return Trial(
        "sort.h",
        name,
        f"{x.shape} axis 1",
        "argsort" if argsort else "sort",
        run,
        lambda: on_cpu(lambda a: of(a, axis=1), x),
    )


def multi_block_sort(dtype: Any, size: int, argsort: bool) -> Trial:
    """Rows longer than one block: sorted blocks, partitions, merges."""
    x = _values(dtype, 2, size)
    bn = _bn(size, x.itemsize)
    blocks, tail = -(-size // (4 * bn)), f"mbsort_{NAMES[x.dtype]}_uint32_bn{bn}_tn4"

    def run(library: RawLibrary) -> Array:
        values = [np.zeros(x.shape, dtype) for _ in range(2)]
        ids = [np.zeros(x.shape, np.uint32) for _ in range(2)]
        partitions = np.zeros((2, blocks + 1), np.uint32)
        length, groups = np.int32(size), {"threadgroups": (blocks, 2, 1), "threadgroup": bn}
        first = [
            x,
            values[0],
            ids[0],
            length,
            np.int32(1),
            np.int32(1),
            np.array([2], np.int32),
            np.array([size], np.int64),
        ]
        library.function(f"sort_{tail}")(first, **groups)
        tiles = 2
        while tiles // 2 < blocks:
            shared = [length, np.int32(tiles), np.int32(blocks)]
            partition = library.function(f"partition_{tail}")
            partition(
                [partitions, values[0], ids[0], *shared], threadgroups=(1, 2, 1), threadgroup=min(blocks + 1, 1024)
            )
            library.function(f"merge_{tail}")([partitions, values[0], ids[0], values[1], ids[1], *shared], **groups)
            values, ids, tiles = values[::-1], ids[::-1], tiles * 2
        return ids[0] if argsort else values[0]

    of = mx.argsort if argsort else mx.sort
    return Trial(
        "sort.h",
        f"merge_{tail}",
        str(x.shape),
        "argsort" if argsort else "sort",
        run,
        lambda: on_cpu(lambda a: of(a, axis=1), x),
        also=(f"sort_{tail}", f"partition_{tail}"),
    )


def search(dtype: Any, right: bool) -> Trial:
    table = np.sort(_values(dtype, 200) if np.dtype(dtype).kind in "iu" else normal(dtype, 200))
    wanted = np.concatenate(
        [table[::7], normal(dtype, 40, seed=1) if np.dtype(dtype).kind in "fV" else whole(dtype, 0, 100, 40, seed=1)]
    )
    name = f"searchsorted_{NAMES[table.dtype]}_{'right' if right else 'left'}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(wanted.size, np.uint32)
        library.function(name)(
            [table, wanted, out, np.uint32(200), np.int64(1)], grid=(wanted.size, 1, 1), threadgroup=32
        )
        return out

    def expected() -> Array:
        return on_cpu(lambda a, v: mx.searchsorted(a, v, side="right" if right else "left"), table, wanted)

    return Trial("searchsorted.h", name, "200", "searchsorted", run, expected)


def trials() -> list[Trial]:
    made = [scan("sum", t, (3, s)) for t in ("int32", "int8", "int64", "bool", *FLOATS) for s in (5, 130, 5000)]
    made += [scan(k, t, (2, 700)) for k in ("prod", "max", "min") for t in ("int32", F32, F16)]
    made += [scan("sum", "int32", (2, 700), inclusive=i, reverse=r) for i in (True, False) for r in (True, False)]
    made += [scan("max", F32, (2, 700), inclusive=i, reverse=r) for i in (True, False) for r in (True, False)]
    made += [scan("sum", t, (3, 50, 40), axis=1, inclusive=i) for t in ("int32", F16, "int64") for i in (True, False)]
    made += [scan("min", F32, (70, 33), axis=0, reverse=True), scan("logaddexp", F32, (2, 300))]
    made += [block_sort(t, s, a) for t in ("int32", "uint8", "int64", *FLOATS) for s in (7, 300) for a in (False, True)]
    made += [block_sort(t, 100, a, axis=0) for t in (F32, F16) for a in (False, True)]
    made += [general_sort(t, a) for t in ("int16", F32) for a in (False, True)]
    made += [
        multi_block_sort(t, s, a)
        for t, s in (("int32", 5000), (F16, 5000), (F32, 9000), ("int64", 3000))
        for a in (False, True)
    ]
    made += [search(t, right) for t in ("int32", "uint8", *FLOATS) for right in (False, True)]
    return made
