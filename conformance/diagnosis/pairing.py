"""Two sets of tensors held against each other, name by name and bit by bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.diagnosis.pattern import pattern
from mlx_assay.conformance.judging.compare import PLACES, Comparison, compare
from mlx_assay.conformance.judging.ulp import has_distance
from mlx_assay.conformance.record import Pattern, Place
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, Verdict, weakest

PART = 1 << 22
"""Elements that are compared at once."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two tensors. `verdict` is same-bits, within-ulp where a distance was allowed on request, or differs.

    `reason` says why two that cannot be compared differ: another dtype or shape.
    """

    name: str
    other: str
    verdict: Verdict
    dtype: str
    shape: list[int]
    count: int = 0
    total: int = 0
    worst_ulp: int | None = None
    reason: str = ""
    places: list[Place] = []
    pattern: Pattern | None = None


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs of two files; `missing` stand in the first alone, `extra` in the second."""

    first: str
    second: str
    ulps: int | None
    pairs: list[Pair]
    missing: list[str] = []
    extra: list[str] = []

    @property
    def elements(self) -> int:
        """Elements that were compared."""
        return sum(pair.total for pair in self.pairs)

    @property
    def exit_code(self) -> int:
        """1 where anything differs or is missing, 3 where no element was compared."""
        if self.missing or self.extra or any(pair.verdict is Verdict.DIFFERS for pair in self.pairs):
            return EXIT_DIFFERS
        return EXIT_CONFORMS if self.elements else EXIT_INCOMPLETE


def chosen(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray], names: Sequence[str]
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Pairs of names, then names that only the first or the second has.

    `names` are `NAME`, or `NAME=OTHER` for tensors of different names; none means all. Where each file has one tensor,
    their names do not matter. ValueError for a name that is not there.
    """
    if not names:
        if len(first) == len(second) == 1:
            return [(next(iter(first)), next(iter(second)))], [], []
        both = [name for name in first if name in second]
        return [(name, name) for name in both], sorted(set(first) - set(both)), sorted(set(second) - set(both))
    pairs = []
    for text in names:
        name, separator, other = (text, "", "") if text in first and text in second else text.partition("=")
        pair = (name, other if separator else name)
        for one, held, which in zip(pair, (first, second), ("first", "second"), strict=True):
            if one not in held:
                raise ValueError(f"Expected a tensor of the {which} file, {_listed(held)}, but got {one!r}")
        pairs.append(pair)
    return pairs, [], []


def _listed(tensors: Mapping[str, np.ndarray]) -> str:
    names = [repr(name) for name in list(tensors)[:20]]
    return ", ".join(names) + (f" and {len(tensors) - 20} more" if len(tensors) > 20 else "") or "which has none"


def _compared(one: np.ndarray, two: np.ndarray, ulps: int | None) -> Comparison:
    """As `compare` has it, part by part, since what it keeps of a place takes many times the place's own bytes."""
    came, right = one.reshape(-1), two.reshape(-1)
    parts: list[tuple[int, Comparison]] = []
    for first in range(0, one.size, PART):
        part = compare(came[first : first + PART], right[first : first + PART], (), ulps)
        if part.rung is not Verdict.SAME_BITS:
            parts.append((first, part))
    if not parts:
        return Comparison(Verdict.SAME_BITS, 0, one.size, 0, (), ())
    rung = weakest([part.rung for _, part in parts])
    telling = [(first, part) for first, part in parts if part.rung is rung]
    worst = [part.worst_ulp for _, part in telling]
    places = [
        Place([int(axis) for axis in np.unravel_index(place.index[0] + first, one.shape)], place.got, place.want)
        for first, part in telling
        for place in part.places
    ]
    return Comparison(
        rung=rung,
        count=sum(part.count for _, part in telling),
        total=one.size,
        worst_ulp=None if None in worst else max(apart for apart in worst if apart is not None),
        places=tuple(places[:PLACES]),
        relaxations=(),
        at=np.concatenate([part.at + first for first, part in telling]),
    )


def pair(name: str, other: str, one: np.ndarray, two: np.ndarray, ulps: int | None) -> Pair:
    """Holds one tensor, what came, against another, what is expected."""
    told: dict[str, Any] = {"name": name, "other": other, "dtype": str(one.dtype), "shape": list(one.shape)}
    if one.dtype != two.dtype or one.shape != two.shape:
        reason = f"{one.dtype} {list(one.shape)} against {two.dtype} {list(two.shape)}"
        return Pair(**told, verdict=Verdict.DIFFERS, reason=reason)
    found = _compared(one, two, ulps if has_distance(one.dtype) else None)
    if found.rung is Verdict.SAME_BITS:
        return Pair(**told, verdict=found.rung, total=found.total)
    return Pair(
        **told,
        verdict=found.rung,
        count=found.count,
        total=found.total,
        worst_ulp=found.worst_ulp,
        places=list(found.places),
        pattern=pattern(Evidence(one, two, found.at)),
    )
