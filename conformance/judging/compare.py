"""Comparison of two outputs: encodings first, then named relaxations, then a stated distance; never a tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlx_assay.conformance.judging.relaxation import relaxation
from mlx_assay.conformance.judging.ulp import distances, encodings, has_distance, is_zero
from mlx_assay.conformance.record import Place
from mlx_assay.conformance.verdict import Verdict

PLACES = 5
"""How many differing places a comparison keeps."""


@dataclass(frozen=True)
class Comparison:
    """What was found.

    `rung` is the strongest rung that holds. Where it is `differs`, `count` and `places` tell of the elements that
    break it; elsewhere of all whose encodings differ. `worst_ulp` is the largest distance among those counted, or
    None where a distance does not exist (NaN against a number, integers). `relaxations` are those really needed.
    `at` are the flat places of all elements counted, rising.
    """

    rung: Verdict
    count: int
    total: int
    worst_ulp: int | None
    places: tuple[Place, ...]
    relaxations: tuple[str, ...]
    at: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64), repr=False, compare=False)


@dataclass(frozen=True)
class Different:
    """Elements of two outputs of `shape`: their flat places, and both values there."""

    shape: tuple[int, ...]
    at: np.ndarray
    got: np.ndarray
    want: np.ndarray

    @property
    def size(self) -> int:
        """How many they are."""
        return int(self.at.size)

    def without(self, passed: np.ndarray) -> Different:
        """Those that did not pass."""
        left = ~passed
        return Different(self.shape, self.at[left], self.got[left], self.want[left])

    def relaxed(self, names: Sequence[str]) -> tuple[Different, tuple[str, ...]]:
        """Those that no relaxation lets pass, and the relaxations that let one pass."""
        left, used = self, []
        for name in names:
            passed = relaxation(name)(left.got, left.want)
            if passed.any():
                used.append(name)
                left = left.without(passed)
        return left, tuple(used)

    def finding(self, rung: Verdict, used: tuple[str, ...]) -> Comparison:
        """The comparison that counts these elements."""
        indices = np.stack(np.unravel_index(self.at[:PLACES], self.shape), axis=-1) if self.shape else [()]
        places = tuple(
            Place(index=[int(axis) for axis in index], got=hex_bits(got), want=hex_bits(want))
            for index, got, want in zip(indices, self.got, self.want, strict=False)
        )
        return Comparison(rung, self.size, int(np.prod(self.shape)), self._worst(), places, used, self.at)

    def _worst(self) -> int | None:
        if not has_distance(self.want.dtype):
            return None
        apart = distances(self.got, self.want)
        return None if (apart < 0).any() else int(apart.max())


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
    flat_got, flat_want = got.reshape(-1), want.reshape(-1)
    at = np.flatnonzero(encodings(flat_got) != encodings(flat_want))
    if not at.size:
        return Comparison(Verdict.SAME_BITS, 0, want.size, 0, (), ())
    different = Different(want.shape, at, flat_got[at], flat_want[at])
    left, used = different.relaxed(relaxations)
    if not left.size:
        return different.finding(Verdict.SAME_VALUE, used)
    if ulps is not None and has_distance(want.dtype):
        allowed = np.broadcast_to(np.asarray(ulps), want.shape).reshape(-1)
        left = left.without(within(left.got, left.want, allowed[left.at]))
        if not left.size:
            return different.finding(Verdict.WITHIN_ULP, used)
    return left.finding(Verdict.DIFFERS, used)


def within(got: np.ndarray, want: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which elements are at most `allowed` units in the last place apart.

    A NaN against a number, a bound that is NaN or negative, and zeros of opposite signs do not pass.
    """
    apart = distances(got, want)
    opposite_zeros = is_zero(got) & is_zero(want) & (apart != 0)
    passed: np.ndarray = (apart >= 0) & (apart <= allowed) & ~opposite_zeros
    return passed


def hex_bits(element: np.generic | np.ndarray) -> str:
    """The encoding of one element as a hex bit string of its full width."""
    array = np.asarray(element)
    return f"0x{int(encodings(array)):0{array.dtype.itemsize * 2}x}"
