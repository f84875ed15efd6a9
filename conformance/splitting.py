"""Splitting: a run in shards of about the same duration, the same on every machine, each case in exactly one."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec

from mlx_assay.conformance.options import Options, shard
from mlx_assay.conformance.reporting.intake import Damaged, take
from mlx_assay.conformance.reporting.report import Shard
from mlx_assay.conformance.selection import Selection
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import all_cases

SHIPPED = Path(__file__).with_name("durations.json")
OTHERWISE = 20_000
"""Microseconds that a case counts for of whose kind no duration is known."""
LONGEST = 10**10


def whole(ids: Iterable[str]) -> str:
    """SHA-256 over all case ids of a run, in alphabetical order, a line each."""
    return hashlib.sha256("".join(f"{name}\n" for name in sorted(ids)).encode()).hexdigest()


def part(selection: Selection, options: Options) -> Selection:
    """The shard of a selection that the options ask for, all of it where they ask for none.

    ValueError where there are more shards than cases, or the durations cannot be read.
    """
    if options.shard is None:
        return selection
    index, count = shard(options.shard)
    if count > len(selection.cases):
        raise ValueError(f"Expected at most {len(selection.cases)} shards, one a case, but got {count}")
    recorded = durations(options.durations) if options.durations is not None else {}
    shares = split(selection.cases, count, recorded, early(options.seed))
    made = Shard(index=index, count=count, whole=whole(case.id for case in selection.cases))
    return replace(selection, cases=shares[index - 1], shard=made)


def split(
    cases: Sequence[Case], count: int, recorded: Mapping[str, int] | None = None, now: Collection[Case] | None = None
) -> list[tuple[Case, ...]]:
    """Shares of cases, each in the order of the whole; the longest case first goes to whom has least to do.

    `recorded` are microseconds by case id, `now` the cases of the quick tier, all without. Integers alone are added
    and compared, so that every machine agrees.
    """
    costs = [
        (_cost(case, recorded or {}, now is None or case in now), case.id, place) for place, case in enumerate(cases)
    ]
    loads = [(0, number) for number in range(count)]
    places: list[list[int]] = [[] for _ in range(count)]
    for cost, _, place in sorted(costs, key=lambda item: (-item[0], item[1])):
        load, number = loads[0]
        heapq.heapreplace(loads, (load + cost, number))
        places[number].append(place)
    return [tuple(cases[place] for place in sorted(chosen)) for chosen in places]


def _cost(case: Case, recorded: Mapping[str, int], quick: bool) -> int:
    """Microseconds, at least one: no shard is left without a case."""
    return max(1, recorded.get(case.id) or expected(case, quick))


def expected(case: Case, quick: bool = True) -> int:
    """Microseconds that a case takes by what is shipped: the mean of its kind in its tier, or else in the other."""
    kind = f"{case.operation}/{case.kind}"
    first, other = ("quick", "full") if quick else ("full", "quick")
    return table(first).get(kind) or table(other).get(kind, OTHERWISE)


def early(seed: int) -> frozenset[Case]:
    """The quick tier's cases of a seed."""
    return frozenset(all_cases("quick", seed))


def table(tier: str) -> Mapping[str, int]:
    """Of one tier what `shipped` has."""
    return shipped().get(tier, {})


@cache
def shipped() -> Mapping[str, Mapping[str, int]]:
    """By tier the microseconds that a case of an operation's kind took on average: in the quick tier, and in the full
    one of those that it alone has. ci/record_durations.py recorded them.

    Damaged, a ValueError, where the file cannot be read.
    """
    try:
        return msgspec.json.decode(SHIPPED.read_bytes(), type=dict[str, dict[str, int]])
    except (OSError, ValueError) as error:
        raise Damaged(f"{SHIPPED.name}: {error}") from error


def durations(file: str) -> dict[str, int]:
    """Microseconds by case id, from the report of an earlier run; ValueError where it is none."""
    try:
        cases = take(file).report.cases
    except Damaged as error:
        raise ValueError(f"The durations in {file} cannot be read: {error}") from error
    return {record.id: int(min(max(record.seconds, 0) * 1e6, LONGEST)) for record in cases}
