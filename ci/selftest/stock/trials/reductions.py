"""Reductions: whole arrays, rows, columns, argmax, products of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock import dispatch, reduction
from mlx_assay.impl.executors.stock.dispatch import up
from trials.trial import (
    F16,
    F32,
    FLOATS,
    MANTISSA,
    NAMES,
    U32,
    Array,
    Trial,
    normal,
    on_cpu,
    rounding,
    whole,
    wide,
)  # fmt: skip

OPERATIONS: dict[str, Callable[..., Any]] = {"sum": mx.sum, "prod": mx.prod, "max": mx.max, "min": mx.min}
ANY_ORDER = "n roundings of partial sums in the array's own dtype, in whatever order: n u sum|x|"


def any_order(x: Array, axis: Any) -> tuple[Array, Array]:
    """The exact sum, and what summing in any order in x's dtype may be off by (Higham, section 4.2)."""
    count = x.size if axis is None else x.shape[axis]
    unit = 2.0 ** -(MANTISSA[x.dtype] + 1)
    return wide(x).sum(axis), count * unit / (1 - count * unit) * np.abs(wide(x)).sum(axis)


def bounded(dtype: Any, count: int) -> bool:
    """Whether summing so many in any order has a bound of use."""
    return count * 2.0 ** -(MANTISSA[np.dtype(dtype)] + 1) < 0.5


def sparse(x: Array, axis: int) -> Array:
    """Without all but a few elements along an axis, so that every partial sum is exact in 16 bits."""
    if x.itemsize > 2 or x.shape[axis] <= 100:
        return x
    kept = np.arange(x.shape[axis]) % (x.shape[axis] // 60) == 0
    made: Array = (x * kept.reshape([-1 if i == axis else 1 for i in range(x.ndim)])).astype(x.dtype)
    return made


def reduced(dtype: Any, operation: str) -> Any:
    """MLX adds and multiplies small integers in 32 bits."""
    kind, size = np.dtype(dtype).kind, np.dtype(dtype).itemsize
    return (
        ("uint32" if kind == "u" else "int32") if operation in ("sum", "prod") and kind in "iub" and size < 4 else dtype
    )


def all_reduce(operation: str, dtype: Any, size: int) -> Trial:
    """One threadgroup to 4,096 elements, two passes above."""
    exact_values = operation != "sum" or np.dtype(dtype).kind in "iub"
    x = (
        whole(dtype, 1, 3, size)
        if operation == "prod"
        else whole(dtype, 0, 90, size)
        if exact_values
        else normal(dtype, size)
    )
    x = np.ones_like(x) if operation == "prod" and size > 20 else x
    name = f"all_reduce_{operation}{NAMES[x.dtype]}"

    def run(library: RawLibrary) -> Array:
        made = np.zeros(1, reduced(x.dtype, operation))
        if size <= 4096:
            threads = 32 * up(up(size, 4), 32)
            library.function(name)([x, made, np.uint64(size), np.uint64(size)], grid=threads, threadgroup=threads)
            return made
        rows = 128
        partial, row = np.zeros(rows, made.dtype), -(-size // rows)
        threads = 32 * up(min(up(row, 4), 1024), 32)
        sizes = [np.uint64(size), np.uint64(row)]
        library.function(name)([x, partial, *sizes], grid=(threads, rows), threadgroup=threads)
        second = library.function(f"all_reduce_{operation}{NAMES[made.dtype]}")
        second([partial, made, np.uint64(rows), np.uint64(rows)], grid=32, threadgroup=32)
        return made

    def expected() -> Array:
        return on_cpu(OPERATIONS[operation], x).reshape(1)

    bound = None if exact_values else lambda: tuple(a.reshape(1) for a in any_order(x, None))
    return Trial("reduction/reduce_all.h", name, str(size), operation, run, expected, bound, ANY_ORDER)


def init_reduce(operation: str, value: Any, dtype: Any) -> Trial:
    name = f"init_reduce_{operation}{NAMES[np.dtype(dtype)]}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(50, dtype) if operation != "sum" else np.ones(50, dtype)
        library.function(name)([out], grid=50, threadgroup=32)
        return out

    return Trial(
        "reduction/reduce_init.h", name, "50", f"full({value})", run,
        lambda: on_cpu(lambda s: mx.full((50,), value, s.dtype), np.zeros(1, dtype)),
    )  # fmt: skip


def rows(operation: str, dtype: Any, shape: tuple[int, int], real: bool = False) -> Trial:
    high = 2 if operation == "prod" else 30 if np.dtype(dtype).itemsize > 2 else 3
    x = normal(dtype, *shape) if real else whole(dtype, 1 if operation == "prod" else 0, high, *shape)
    x = x if real or operation != "sum" else sparse(x, 1)
    small, simple = shape[1] <= 64, shape[1] > 64 and shape[0] >= 32
    kind = "small_1_reduce_" if small else "simple_" if simple else "looped_1_reduce_"
    bound = (lambda: any_order(x, 1)) if real and operation == "sum" else None
    return Trial(
        "reduction/reduce_row.h", f"row_reduce_{kind}{operation}{NAMES[np.dtype(dtype)]}", str(shape), operation,
        lambda library: reduction.reduce_rows(library, x, operation),
        lambda: on_cpu(lambda a: OPERATIONS[operation](a, axis=-1), x), bound, ANY_ORDER,
    )  # fmt: skip


def columns(operation: str, dtype: Any, shape: tuple[int, int, int], real: bool = False) -> Trial:
    _, size, stride = shape
    high = 2 if operation == "prod" or size > 4000 else 3
    x = normal(dtype, *shape) if real else whole(dtype, 1 if operation == "prod" else 0, high, *shape)
    x = x if real or operation != "sum" else sparse(x, 1)
    blocks = shape[0] * stride // 32
    kind = (
        "small_1" if size < 32 else "longcolumn_1" if stride < 32 and size >= 1024
        else "2pass_1_32_32" if size > 256 and blocks < 1024 else "looped_1_32_32"
    )  # fmt: skip
    bound = (lambda: any_order(x, 1)) if real and operation == "sum" else None
    return Trial(
        "reduction/reduce_col.h", f"col_reduce_{kind}_reduce_{operation}{NAMES[np.dtype(dtype)]}", str(shape),
        operation,
        lambda library: reduction.reduce_columns(library, x, operation),
        lambda: on_cpu(lambda a: OPERATIONS[operation](a, axis=1), x), bound, ANY_ORDER,
    )  # fmt: skip


def general_rows(dtype: Any) -> Trial:
    """Rows of a permuted array with two more reduced axes: row_reduce_looped_2 and its walk over strides."""
    shape = (3, 4, 5, 70)
    x = whole(dtype, 0, 3, *shape)
    name = f"row_reduce_looped_2_reduce_sum{NAMES[np.dtype(dtype)]}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(4, dtype)
        kept = [np.array([4], np.int32), np.array([350], np.int64), np.int32(1)]
        gone = [np.array([3, 5], np.int32), np.array([1400, 70], np.int64), np.int32(2)]
        buffers = [x, out, np.int64(70), np.int64(15), *kept, *gone]
        library.function(name)(buffers, grid=(32, 4, 1), threadgroup=(32, 1, 1))
        return out

    return Trial(
        "reduction/reduce_row.h", name, str(shape), "sum(axis=(0, 2, 3))", run,
        lambda: on_cpu(lambda a: mx.sum(a, axis=(0, 2, 3)), x),
    )  # fmt: skip


def argmax(dtype: Any, size: int, smallest: bool) -> Trial:
    x = normal(dtype, 2, 3, size)
    x[0, 0, : size // 2] = x[0, 0, 0]
    name = "argmin" if smallest else "argmax"
    return Trial(
        "arg_reduce", f"{name}_{NAMES[x.dtype]}", str(x.shape), name,
        lambda library: dispatch.argmax(library, x, smallest=smallest),
        lambda: on_cpu(lambda a: getattr(mx, name)(a, axis=-1), x), doors="twin",
    )  # fmt: skip


def dot(dtype: Any, size: int) -> Trial:
    a, b = normal(dtype, size), normal(dtype, size, seed=1)
    name = f"dot_product_{NAMES[a.dtype]}_it32_tg512_sg16"

    def run(library: RawLibrary) -> Array:
        groups = -(-size // (512 * 32))
        out = np.zeros(groups, np.float32)
        library.function(name)([a, b, out, np.int32(size)], threadgroups=groups, threadgroup=512)
        return out.sum(keepdims=True, dtype=np.float32)

    def bound() -> tuple[Array, Array]:
        terms = wide(a) * wide(b)
        exact = terms.sum(keepdims=True)
        return exact, size * U32 * np.abs(terms).sum(keepdims=True) + rounding(exact, dtype) * (a.dtype != F32)

    def expected() -> Array:
        return on_cpu(lambda x, y: (x[None] @ y[:, None])[0], a, b)

    reason = "n roundings of f32 sums of exact products, and the result's rounding to the dtype on the CPU"
    return Trial("dot.h", name, str(size), "a @ b", run, expected, bound, reason)


def trials() -> list[Trial]:
    sizes = (1, 100, 4096, 20_000)
    made = [all_reduce(k, t, s) for k in ("max", "min") for t in ("int32", *FLOATS) for s in sizes]
    made += [all_reduce("sum", t, s) for t in ("int32", *FLOATS) for s in sizes if t == "int32" or bounded(t, s)]
    made += [all_reduce(k, t, 100) for k in ("sum", "max") for t in ("int8", "uint16", "int64")]
    made += [all_reduce("prod", t, 9) for t in ("int32", F32)]
    made += [init_reduce("sum", 0, t) for t in ("int32", *FLOATS)] + [init_reduce("prod", 1, t) for t in ("int32", F16)]
    made += [init_reduce("max", -np.inf, F32), init_reduce("min", np.inf, F16), init_reduce("max", -128, "int8")]
    made += [
        rows(k, t, s) for k in OPERATIONS for t in ("int32", "int8", *FLOATS) for s in ((5, 40), (40, 100), (3, 600))
    ]
    made += [rows("sum", t, s, real=True) for t in FLOATS for s in ((1, 70), (33, 1500), (4, 5000)) if bounded(t, s[1])]
    made += [general_rows(t) for t in ("int32", F32)]
    shapes = ((2, 10, 70), (2, 1100, 3), (2, 300, 100), (3, 128, 64))
    made += [columns(k, t, s) for k in OPERATIONS for t in ("int32", *FLOATS) for s in shapes]
    made += [columns("sum", t, s, real=True) for t in FLOATS for s in (*shapes, (1, 33_000, 2)) if bounded(t, s[1])]
    made += [argmax(t, s, smallest) for t in FLOATS for s in (5, 1000, 9001) for smallest in (False, True)]
    made += [dot(t, s) for t in FLOATS for s in (100, 20_000)]
    return made
