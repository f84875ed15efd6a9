"""float32 arithmetic as a GPU's unit does it: fused multiply-add, and sums of a SIMD group in a declared order.

Where a unit takes denormals for zero, results are flushed here; operands are to be flushed before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

SMALLEST_NORMAL = np.float32(2.0**-126)
LANES = 32


def flushed(values: np.ndarray) -> np.ndarray:
    """float32: denormals as zeros of their sign."""
    small = np.abs(values) < SMALLEST_NORMAL
    if not small.any():
        return values
    kept = np.array(values)
    kept.view(np.uint32)[small] &= np.uint32(1 << 31)
    return kept


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, flush: bool = False) -> np.ndarray:
    """float32: a * b + c, rounded once, to nearest even; with `flush` a denormal result is zero.

    The product of two float32 is exact in float64. Their sum with the third is rounded to odd there (Boldo and
    Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008), so that
    the second rounding, to float32, is the only one that counts. A plain float64 sum is rounded twice.
    """
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        addend = c.astype(np.float64)
        total = product + addend
        part = total - product
        error = (product - (total - part)) + (addend - part)
        bits = total.view(np.int64)
        inexact = (error != 0) & np.isfinite(total)
        outward = (error > 0) == (total > 0)
        bits += np.where(inexact & ((bits & 1) == 0), np.where(outward, 1, -1), 0)
        result = np.asarray(total.astype(np.float32))
    return flushed(result) if flush else result


def multiplied(a: np.ndarray, b: np.ndarray, flush: bool = False) -> np.ndarray:
    """float32: a * b, rounded once."""
    with np.errstate(all="ignore"):
        result = np.asarray(a * b)
    return flushed(result) if flush else result


def added(a: np.ndarray, b: np.ndarray, flush: bool = False) -> np.ndarray:
    """float32: a + b, rounded once."""
    with np.errstate(all="ignore"):
        result = np.asarray(a + b)
    return flushed(result) if flush else result


def _ascending(values: np.ndarray, flush: bool) -> np.ndarray:
    """What lane 0 gets of the butterfly with distances 1, 2, 4, 8, 16: neighbours first."""
    while len(values) > 1:
        values = added(values[::2], values[1::2], flush)
    return np.asarray(values[0])


def _descending(values: np.ndarray, flush: bool) -> np.ndarray:
    """The same with distances 16, 8, 4, 2, 1: halves first."""
    while len(values) > 1:
        half = len(values) // 2
        values = added(values[:half], values[half:], flush)
    return np.asarray(values[0])


def _in_turn(values: np.ndarray, flush: bool) -> np.ndarray:
    total: np.ndarray = values[0]
    for lane in values[1:]:
        total = added(total, lane, flush)
    return total


ORDERS: Mapping[str, Callable[[np.ndarray, bool], np.ndarray]] = {
    "ascending-butterfly": _ascending,
    "descending-butterfly": _descending,
    "sequential": _in_turn,
    "reverse-sequential": lambda values, flush: _in_turn(values[::-1], flush),
}
"""Orders in which a SIMD group may add its lanes: Apple documents none. From lanes [32, ...] to their sum [...]."""


def simd_sum(values: np.ndarray, order: str, flush: bool = False) -> np.ndarray:
    """float32 [...]: the sum of lanes [32, ...] in one of ORDERS; ValueError for another order or count of lanes."""
    if order not in ORDERS:
        raise ValueError(f"Expected an order of a SIMD group's sum, one of {', '.join(ORDERS)}, but got {order!r}")
    if len(values) != LANES:
        raise ValueError(f"Expected {LANES} lanes but got {len(values)}")
    return ORDERS[order](flushed(values) if flush else values, flush)
