"""Comparison of two outputs: encodings first, then named relaxations, then a stated distance; never a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlx_assay.conformance.record import Place
from mlx_assay.conformance.relaxation import relaxation
from mlx_assay.conformance.ulp import distances, encodings, has_distance, is_zero
from mlx_assay.conformance.verdict import Verdict

PLACES = 5
"""How many differing places a comparison keeps."""


@dataclass(frozen=True)
class Comparison:
    """What was found.

    `rung` is the strongest rung that holds. Where it is `differs`, `count` and `places` tell of the elements that
    break it; elsewhere of all whose encodings differ. `worst_ulp` is the largest distance among those counted, or
    None where a distance does not exist (NaN against a number, integers). `relaxations` are those really needed.
    """

    rung: Verdict
    count: int
    total: int
    worst_ulp: int | None
    places: tuple[Place, ...]
    relaxations: tuple[str, ...]


def compare(
    got: np.ndarray, want: np.ndarray, relaxations: Sequence[str], ulps: int | np.ndarray | None = None
) -> Comparison:
    """Holds `got` against `want`, two arrays of one dtype and shape.

    `ulps` is the largest distance that passes, an integer or an array of the outputs' shape; None lets none pass.
    +0 and -0 are never within a distance of each other. ValueError where dtypes or shapes are not the same.
    """
    if got.dtype != want.dtype or got.shape != want.shape:
        raise ValueError(
            f"Expected outputs of one dtype and shape but got {got.dtype}{got.shape} and {want.dtype}{want.shape}"
        )
    total = want.size
    different = encodings(got) != encodings(want)
    if not different.any():
        return Comparison(Verdict.SAME_BITS, 0, total, 0, (), ())
    at = np.nonzero(different) if different.ndim else ()
    got_there, want_there = np.atleast_1d(got[at]), np.atleast_1d(want[at])
    left, used = _relax(got_there, want_there, relaxations)
    if not left.any():
        return _finding(Verdict.SAME_VALUE, got, want, different, used)
    if ulps is not None and has_distance(want.dtype):
        allowed = np.broadcast_to(np.asarray(ulps), want.shape)[at]
        left &= ~within(got_there, want_there, np.atleast_1d(allowed))
        if not left.any():
            return _finding(Verdict.WITHIN_ULP, got, want, different, used)
    beyond = np.zeros(want.shape, dtype=bool)
    beyond[at] = left if want.ndim else left[0]
    return _finding(Verdict.DIFFERS, got, want, beyond, used)


def within(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which elements are at most `allowed` units in the last place apart.

    A NaN against a number, a bound that is NaN or negative, and zeros of opposite signs do not pass.
    """
    apart = distances(got, want)
    opposite_zeros = is_zero(got) & is_zero(want) & (apart != 0)
    passed: np.ndarray = (apart >= 0) & (apart <= allowed) & ~opposite_zeros
    return passed


def _relax(got: np.ndarray, want: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    left = np.ones(got.shape, dtype=bool)
    used = []
    for name in names:
        passed = left & relaxation(name)(got, want)
        if passed.any():
            used.append(name)
            left &= ~passed
    return left, tuple(used)


def _finding(
    rung: Verdict, got: np.ndarray, want: np.ndarray, counted: np.ndarray, used: tuple[str, ...]
) -> Comparison:
    at = np.nonzero(counted) if counted.ndim else ()
    got_there, want_there = np.atleast_1d(got[at]), np.atleast_1d(want[at])
    indices = np.argwhere(counted)[:PLACES] if counted.ndim else np.zeros((1, 0), dtype=np.int64)
    places = tuple(
        Place(index=[int(axis) for axis in index], got=hex_bits(g), want=hex_bits(w))
        for index, g, w in zip(indices, got_there, want_there, strict=False)
    )
    return Comparison(rung, len(got_there), want.size, _worst(got_there, want_there), places, used)


def _worst(got: np.ndarray, want: np.ndarray) -> int | None:
    if not has_distance(want.dtype):
        return None
    apart = distances(got, want)
    return None if (apart < 0).any() else int(apart.max())


def hex_bits(element: np.generic | np.ndarray) -> str:
    """The encoding of one element as a hex bit string of its full width."""
    array = np.asarray(element)
    return f"0x{int(encodings(array)):0{array.dtype.itemsize * 2}x}"
