"""The orders of addition that are known: plain ones, and those of MLX's own reductions, by the size of the sum.

MLX's are read from its kernels as of 0.32.4 (reduction/reduce_row.h, reduce_col.h, reduce_all.h) and from the rules by
which its Metal back end chooses among them (backend/metal/reduce.cpp). How a GPU adds the lanes of a simdgroup is
documented nowhere, so each of those trees comes in every order that is thought of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mlx_assay.oracles.accumulation import Combination, Groups, Lanes, Rows, Step, Tree

READS = 4
SIMDGROUP = 32
SIMD_SUMS: tuple[Combination, ...] = ("ascending-butterfly", "descending-butterfly", "sequential", "reverse")
STRIDES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def row_threads(n: int) -> int:
    """Threads that share a row of more than 64 numbers."""
    if n <= 512:
        return 32
    if n <= 1024:
        return 128
    return min(1024, _round_up(-(-n // READS), SIMDGROUP))


def mlx_row(n: int, simd_sum: Combination) -> tuple[Step, ...]:
    """Along the last axis, rows apart in memory."""
    if n <= 64:
        return (Lanes(1),)
    return _threadgroup(row_threads(n), simd_sum)


def mlx_all(n: int, simd_sum: Combination) -> tuple[Step, ...]:
    """Of a whole f32 array of at most 2^24 numbers."""
    if n <= READS * 1024:
        return _threadgroup(_round_up(-(-n // READS), SIMDGROUP), simd_sum)
    rows = SIMDGROUP * READS
    row = -(-n // rows)
    threads = _round_up(min(-(-row // READS), 1024), SIMDGROUP)
    return (Rows(row, _threadgroup(threads, simd_sum)), *_threadgroup(SIMDGROUP, simd_sum))


def mlx_column_looped(n: int, simd_sum: Combination) -> tuple[Step, ...]:
    """Along an axis of 32 or more with 32 or more columns: up to 256 numbers, or very many columns."""
    return (Lanes(SIMDGROUP), Groups(SIMDGROUP, simd_sum, simdgroup=True))


def mlx_column_small(n: int) -> tuple[Step, ...]:
    """Along an axis of fewer than 32."""
    return (Lanes(min(8, n)), Groups(None, "sequential"))


def mlx_column_long(n: int, simd_sum: Combination) -> tuple[Step, ...]:
    """Along an axis of 1,024 or more with fewer than 32 columns."""
    blocks = 128 if n >= 32768 else 32
    threads = min(32, -(-n // blocks))
    return (Lanes(threads * blocks), Groups(threads, "sequential"), *mlx_column_looped(blocks, simd_sum))


def mlx_column_two_pass(n: int, simd_sum: Combination) -> tuple[Step, ...]:
    """Along an axis of more than 256 with fewer than 32,768 columns."""
    return (Lanes(32 * SIMDGROUP), Groups(SIMDGROUP, simd_sum, simdgroup=True), *mlx_column_looped(32, simd_sum))


def known(n: int, fused: bool = False, bfloat: bool = False) -> Iterator[Tree]:
    """Every tree that a sum of n numbers may have, simplest first; each order of additions once, under all its names.

    `fused`: those whose lanes multiply and add with one rounding, beside those that round each product.
    `bfloat`: of bfloats, of which MLX's simd_sum adds up a simdgroup in another way than one by one.
    """
    names: dict[tuple[Step, ...], list[str]] = {}
    for name, steps in _named(n):
        names.setdefault(_simplest(steps, n, bfloat), []).append(name)
    for steps, alike in names.items():
        name = " = ".join(dict.fromkeys(alike))
        yield Tree(name, steps)
        if fused and isinstance(steps[0], Lanes):
            yield Tree(f"{name}, fused", steps, fused=True)


def _simplest(steps: tuple[Step, ...], n: int, bfloat: bool) -> tuple[Step, ...]:
    """The same additions, each group as large as what there is to add: equal orders become equal steps."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Lanes):
            n = step.count
        elif isinstance(step, Rows):
            n = -(-n // step.size)
        else:
            size = n if step.size is None else min(step.size, n)
            n = -(-n // size)
            step = replace(step, size=size, simdgroup=step.simdgroup and bfloat)
            if size == 1:
                continue
        out.append(step)
    return tuple(out) or (Groups(1, "sequential"),)


def _named(n: int) -> Iterator[tuple[str, tuple[Step, ...]]]:
    yield "sequential", (Lanes(1),)
    yield "reverse", (Groups(None, "reverse"),)
    yield "halves", (Groups(None, "halves"),)
    yield "NumPy pairwise", (Groups(None, "numpy"),)
    yield "butterfly, lowest bit first", (Groups(None, "ascending-butterfly"),)
    yield "butterfly, highest bit first", (Groups(None, "descending-butterfly"),)
    for simd_sum in SIMD_SUMS:
        yield from _mlx(n, simd_sum)
    for count in STRIDES:
        if count < n:
            for combination in SIMD_SUMS:
                yield f"stride {count}, {combination}", (Lanes(count), Groups(None, combination))
                yield (
                    f"{count} contiguous parts, {combination}",
                    (Lanes(count, contiguous=True), Groups(None, combination)),
                )


def _mlx(n: int, simd_sum: Combination) -> Iterator[tuple[str, tuple[Step, ...]]]:
    if n > 64:
        yield f"MLX row reduction, {simd_sum}", mlx_row(n, simd_sum)
    yield f"MLX reduction of all, {simd_sum}", mlx_all(n, simd_sum)
    yield f"MLX looped column reduction, {simd_sum}", mlx_column_looped(n, simd_sum)
    if n < 32:
        yield "MLX small column reduction", mlx_column_small(n)
    if n >= 1024:
        yield f"MLX long column reduction, {simd_sum}", mlx_column_long(n, simd_sum)
    if n > 256:
        yield f"MLX two-pass column reduction, {simd_sum}", mlx_column_two_pass(n, simd_sum)


def _round_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


def _threadgroup(threads: int, simd_sum: Combination) -> tuple[Lanes | Groups, ...]:
    lanes: tuple[Lanes | Groups, ...] = (Lanes(threads, READS), Groups(SIMDGROUP, simd_sum, simdgroup=True))
    return lanes if threads == SIMDGROUP else (*lanes, Groups(SIMDGROUP, simd_sum, simdgroup=True))
