"""Relaxations: named reasons for which two different encodings count as the same value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

from mlx_assay.conformance.judging.ulp import encodings, has_distance, is_denormal, is_nan, is_zero, magnitudes

FLUSHABLE = (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16))

Relaxation = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From two arrays of one dtype and shape to the places that it lets pass, a bool array of that shape."""


def nan_any(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Both are NaN: sign and payload of a NaN made by arithmetic differ between processors (IEEE 754-2019, 6.2)."""
    if not has_distance(got.dtype):
        return np.zeros(got.shape, dtype=bool)
    both: np.ndarray = is_nan(got) & is_nan(want)
    return both


def denormal_flush(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """One side is a denormal and the other a zero of the same sign.

    For float32, and for bfloat16, which has the exponent range of float32 and is computed in it. float16 denormals
    are normal numbers of float32 and are kept by every back end (Metal Shading Language Specification, 7.1).
    """
    if got.dtype not in FLUSHABLE:
        return np.zeros(got.shape, dtype=bool)
    same_sign: np.ndarray = signs(got) == signs(want)
    same_sign &= _denormal_for_zero(got, want)
    return same_sign


def denormal_sum(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """One side is a denormal and the other +0, for contracts that add +0 to their input.

    A machine that takes a negative denormal for -0 before the sum gives -0 + 0 = +0 (IEEE 754-2019, 6.3), where one
    that flushes the sum's result gives -0, which is what denormal-flush lets pass.
    """
    if got.dtype not in FLUSHABLE:
        return np.zeros(got.shape, dtype=bool)
    positive_zero: np.ndarray = (encodings(got) == 0) | (encodings(want) == 0)
    positive_zero &= _denormal_for_zero(got, want)
    return positive_zero


def _denormal_for_zero(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    flushed: np.ndarray = (is_denormal(got) & is_zero(want)) | (is_zero(got) & is_denormal(want))
    return flushed


def signs(array: np.ndarray) -> np.ndarray:
    """Which sign bits are set."""
    negative: np.ndarray = encodings(array) != magnitudes(array)
    return negative


RELAXATIONS: Mapping[str, Relaxation] = {
    "nan-any": nan_any,
    "denormal-flush": denormal_flush,
    "denormal-sum": denormal_sum,
}

FLUSHING = frozenset({"denormal-flush", "denormal-sum"})
"""Relaxations that hold only where the executor says that it flushes denormals."""


def relaxation(name: str) -> Relaxation:
    """The relaxation of that name; ValueError lists those known."""
    try:
        return RELAXATIONS[name]
    except KeyError:
        raise ValueError(f"Expected a relaxation of {', '.join(RELAXATIONS)} but got {name!r}") from None
