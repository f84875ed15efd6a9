"""Distances between encodings: how many representable values lie between two of one dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

MANTISSA_BITS: dict[np.dtype[Any], int] = {
    np.dtype(ml_dtypes.bfloat16): 7,
    np.dtype(np.float16): 10,
    np.dtype(np.float32): 23,
}
"""Stored fraction bits of each binary floating-point dtype that has a distance."""


def encodings(array: np.ndarray) -> np.ndarray:
    """The bits of `array` as unsigned integers of the same width and shape; a view."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def has_distance(dtype: np.dtype[Any]) -> bool:
    """Whether two numbers of `dtype` have a distance in units in the last place: floats do, ids do not."""
    return dtype in MANTISSA_BITS


def infinity(dtype: np.dtype[Any]) -> int:
    """The encoding of +inf; above it, sign aside, lie the NaNs."""
    exponent_bits = dtype.itemsize * 8 - 1 - MANTISSA_BITS[dtype]
    return ((1 << exponent_bits) - 1) << MANTISSA_BITS[dtype]


def magnitudes(array: np.ndarray) -> np.ndarray:
    """Encodings without their sign bit."""
    bits = encodings(array)
    unsigned: np.ndarray = bits & bits.dtype.type((1 << (bits.dtype.itemsize * 8 - 1)) - 1)
    return unsigned


def is_nan(array: np.ndarray) -> np.ndarray:
    """Which encodings are NaN, told from the bits alone: no comparison of floats, no trap, no quieting."""
    nan: np.ndarray = magnitudes(array) > infinity(array.dtype)
    return nan


def is_denormal(array: np.ndarray) -> np.ndarray:
    """Which encodings are denormal numbers; zero is none."""
    size = magnitudes(array)
    denormal: np.ndarray = (size != 0) & (size < (1 << MANTISSA_BITS[array.dtype]))
    return denormal


def is_zero(array: np.ndarray) -> np.ndarray:
    """Which encodings are +0 or -0."""
    zero: np.ndarray = magnitudes(array) == 0
    return zero


def ordinals(array: np.ndarray) -> np.ndarray:
    """int64 ranks of encodings in the order of their values: neighbours are one apart.

    -0 has the rank -1 and +0 the rank 0, so the two zeros are one apart. The infinities stand one beyond the largest
    finite numbers. NaN encodings have ranks beyond the infinities that mean nothing.
    """
    size = magnitudes(array).astype(np.int64)
    negative = array.view(np.dtype(f"i{array.dtype.itemsize}")) < 0
    return np.where(negative, -1 - size, size)


def distances(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """int64 distances in units in the last place; -1 where one side is NaN and the other is not, since none exists.

    Two NaNs are 0 apart, whatever their payloads.
    """
    apart: np.ndarray = np.abs(ordinals(got) - ordinals(want))
    got_nan, want_nan = is_nan(got), is_nan(want)
    apart[got_nan & want_nan] = 0
    apart[got_nan ^ want_nan] = -1
    return apart
