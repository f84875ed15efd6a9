"""One rounding from float64 to bfloat16, float16 or float32, and the ranks of encodings."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import encodings

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

FRACTION_BITS: dict[np.dtype[Any], int] = {BFLOAT16: 7, np.dtype(np.float16): 10, np.dtype(np.float32): 23}
"""Stored fraction bits of each dtype of the softcap."""


def round_once(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """float64 to dtype, to nearest, ties to even, once: like values.

    ml_dtypes takes a float64 to bfloat16 by way of float32, which rounds twice. Rounding to odd in float32 first keeps
    the first rounding from landing on a tie of the second (Boldo and Melquiond, 2008).
    """
    with np.errstate(all="ignore"):
        if dtype != BFLOAT16:
            return np.asarray(values.astype(dtype))
        near = np.asarray(values.astype(np.float32))
        error = values - near
        even = (near.view(np.uint32) & 1) == 0
        outward = (error > 0) != np.signbit(values)
        step = np.where(outward, np.uint32(1), np.uint32(2**32 - 1))
        odd = np.where(even & ((error > 0) | (error < 0)), near.view(np.uint32) + step, near.view(np.uint32))
        return np.asarray(odd.view(np.float32).astype(dtype))


def ranks(values: np.ndarray) -> np.ndarray:
    """int64 ranks of numbers in the order of their values, neighbours one apart, both zeros 0; NaN has no rank."""
    bits = encodings(values).astype(np.int64)
    sign = np.int64(1) << np.int64(8 * values.dtype.itemsize - 1)
    return np.where(bits & sign, -(bits & (sign - 1)), bits)


def unranked(rank: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    """The numbers of given ranks; rank 0 is +0."""
    width: np.dtype[Any] = np.dtype(f"u{dtype.itemsize}")
    sign = np.int64(1) << np.int64(8 * dtype.itemsize - 1)
    return np.asarray(np.where(rank < 0, sign - rank, rank).astype(width)).view(dtype)


def denormal(values: np.ndarray) -> np.ndarray:
    """bool, like values: numbers below the smallest normal one, zero not among them."""
    smallest = 1 << FRACTION_BITS[values.dtype]
    size = np.abs(ranks(values))
    return np.asarray((size > 0) & (size < smallest))
