"""The down projection of one row in float64, and how far float32 arithmetic in any order of sums may lie from it."""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles import host_lut
from mlx_assay.oracles.fault import require, require_bits
from mlx_assay.oracles.rounding import ranks, round_once
from mlx_assay.oracles.trellis_layout import Packed

NAME = "trellis-bound"
REQUIRES = ("numpy", "pip install numpy")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
UNIT = 2.0**-24
SPLITS, ROWS_AT_ONCE = 128, 256
ROUNDINGS_BESIDE_ROWS = 3 + 4 + 31
"""Of one weight: reciprocal, code and product with the scale; of the sums of splits: four, then 31 at most."""


def version() -> str:
    """The release of NumPy."""
    return installed("numpy")


def exact(x: np.ndarray, packed: Packed, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64 [1, cols] twice: the sum of y / d * scale * x over rows, and the same of sizes."""
    words = packed.words
    table = host_lut.sums(packed.L).astype(np.float64) / np.float64(host_lut.DIVISOR)
    factors = scales.astype(np.float64) * x.reshape(-1).astype(np.float64)
    total = np.zeros(packed.cols)
    size = np.zeros_like(total)
    for first in range(0, len(words), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        decoded = table[packed.states(words[rows])]
        total += factors[rows] @ decoded
        size += np.abs(factors[rows]) @ np.abs(decoded)
    return total[None], size[None]


def down_row(x: np.ndarray, packed: Packed, scales: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """dtype [1, cols]: the float64 sum, rounded once."""
    return round_once(exact(x, packed, scales)[0], dtype)


def error(x: np.ndarray, size: np.ndarray) -> np.ndarray:
    """float64, like `size`: n u / (1 - n u) of the sum of sizes, n the roundings on a term's way (Higham, "Accuracy and
    Stability of Numerical Algorithms", 3.1), and what flushed or denormal products can lose."""
    count = x.size
    roundings = -(-count // SPLITS) + ROUNDINGS_BESIDE_ROWS
    lost = 2.0**-126 * (4 * count + count * float(np.abs(x.astype(np.float64)).max(initial=0)) + SPLITS)
    return np.asarray(roundings * UNIT / (1 - roundings * UNIT) * size * (1 + 2.0**-20) + lost)


def distance(x: np.ndarray, total: np.ndarray, size: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """int64, like `expected`: how many encodings away a sum within the error of `exact` may round to."""
    reach = error(x, size)
    middle = ranks(expected)
    low, high = (ranks(round_once(end, expected.dtype)) for end in (total - reach, total + reach))
    crosses = (total - reach < 0) & (total + reach >= 0)
    return np.asarray(np.maximum(middle - low, high - middle) + crosses)


def bounded(x: np.ndarray, scales: np.ndarray, factored: bool = False) -> bool:
    """Whether nothing can overflow or be NaN on the way, in float32: then the bound holds.

    On the way are code * scale and its product with x or, `factored`, scale * x and its product with a byte sum.
    """
    sizes, factors = (np.abs(array.astype(np.float64)).reshape(-1) for array in (x, scales))
    if not (np.isfinite(sizes).all() and np.isfinite(factors).all()):
        return False
    if factored:
        return bool(host_lut.CENTRE * (factors @ sizes) < 2.0**127)
    largest = 4.0 * factors.max(initial=0)
    return bool(largest < 2.0**127 and largest * sizes.sum() < 2.0**127)


def settled(x: np.ndarray, total: np.ndarray, size: np.ndarray, dtype: np.dtype[Any]) -> bool:
    """Whether no sum rounds to a zero whose sign the error decides: no distance admits the other zero."""
    reach = error(x, size)
    either = (total - reach < 0) & (total + reach > 0) & (size > 0)
    return not bool((either & (round_once(total, dtype) == 0)).any())


def self_test() -> None:
    """Sums known by reasoning, and that the bound has a use; raises OracleFault."""
    zero, f32 = Packed(np.zeros((256, 16), np.uint32), 2, 12), np.dtype(np.float32)
    ones, scales = np.ones((1, 256), np.float32), np.ones(256, np.float16)
    sums = ((f32, np.float32(-185 * 256 / 147.800537109375)), (np.dtype(np.float16), -320.5), (BFLOAT16, -320.0))
    for dtype, want in sums:
        got = down_row(ones, zero, scales, dtype)
        require_bits(NAME, "256 equal weights", got, np.full((1, 256), want, dtype))
    reach = distance(ones, *exact(ones, zero, scales), down_row(ones, zero, scales, f32))
    require(NAME, "whether the bound stays near 40 roundings", bool((reach > 20).all() and (reach < 100).all()), True)
    halves = np.full((1, 256), 548.0, BFLOAT16)
    got = down_row(halves, zero, np.full(256, -147.800537109375 / 185, np.float32), BFLOAT16)
    require_bits(NAME, "a sum of halves", got, np.full((1, 256), 140288.0, BFLOAT16))
