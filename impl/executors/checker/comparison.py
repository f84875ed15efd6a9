"""What differs between runs of one kernel: outputs that depend on the schedule, on garbage, or on nothing at all."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mlx_assay.impl.executors.checker.finding import Finding, Kind, Place
from mlx_assay.impl.executors.checker.request import GARBAGE, Condition
from mlx_assay.impl.executors.checker.run import Argument, Mask, Result, Work, run, unwritten
from mlx_assay.impl.executors.launch import DEFAULT_POISON

Elements = np.ndarray[tuple[int], np.dtype[np.int64]]
Runs = list[tuple[Condition, Result]]


def _elements(mask: Mask, size: int) -> Elements:
    """The elements of which a byte is marked."""
    found: Elements = np.flatnonzero(mask.reshape(-1, size).any(axis=1)) if mask.size else np.zeros(0, np.int64)
    return found


def _differing(a: Result, b: Result, index: int) -> Mask:
    differ = np.frombuffer(a.outputs[index], np.uint8) != np.frombuffer(b.outputs[index], np.uint8)
    known: Mask = differ & ~(unwritten(a, index) & unwritten(b, index))
    return known


_RACES = {Kind.RACE, Kind.SIMDGROUP_RACE, Kind.THREADGROUP_RACE, Kind.BARRIER_FLAGS}


def _pair(finding: Finding) -> object:
    return finding.array, frozenset(a.place for a in finding.accesses)


def _harmless(work: Work, runs: Runs) -> set[Place]:
    """Where lanes that are not there were read, and no output depends on what they left."""
    met: dict[int, tuple[Place, Condition, Result]] = {}
    # Where the other places leave a NaN, it may swallow what this one leaves.
    for condition, result in sorted(runs, key=lambda each: each[0].poison == DEFAULT_POISON):
        for site, place in result.inactive.items():
            met.setdefault(site, (place, condition, result))
    found = set()
    for site, (place, condition, result) in met.items():
        others = (run(work, replace(condition, garbage_site=site, garbage=g)) for g in GARBAGE) if result.ended else ()
        if result.ended and all(other.ended and other.outputs == result.outputs for other in others):
            found.add(place)
    return found


_PENDING = {Kind.INACTIVE_LANE, Kind.SAME_VALUE_WRITE}


def certain(result: Result) -> Iterator[Finding]:
    """The findings of a run that stand whatever other runs find."""
    return (finding for finding in result.findings if finding.kind not in _PENDING)


def pending(work: Work, runs: Runs) -> Iterator[Finding]:
    """The other findings, but for values that reach no output and equal writes between the lines of a race."""
    harmless = _harmless(work, runs)
    races = {_pair(f) for _, result in runs for f in result.findings if f.kind in _RACES}
    for _, result in runs:
        for finding in result.findings:
            unseen = finding.kind is Kind.INACTIVE_LANE and finding.place in harmless
            covered = finding.kind is Kind.SAME_VALUE_WRITE and _pair(finding) in races
            if finding.kind in _PENDING and not unseen and not covered:
                yield finding


def differing(runs: Runs) -> bool:
    """Whether outputs differ between runs, where they were written."""
    (_, first), *others = runs
    return any(_differing(first, other, i).any() for _, other in others for i in range(len(first.outputs)))


def compared(work: Work, runs: Runs) -> Iterator[Finding]:
    """A finding for each output and each way in which it is not determined."""
    ended = [each for each in runs if each[1].ended]
    outputs = [a for a in work.arguments if a.output]
    for index, argument in enumerate(outputs):
        if not ended or not argument.size:
            continue
        base, first = ended[0]
        yield from _unwritten(work, argument, base.schedule, first, index)
        for condition, other in ended[1:]:
            if condition.schedule == base.schedule:
                differing = _differing(first, other, index)
                yield from _depends(work, argument, Kind.DEPENDS_ON_GARBAGE, base.schedule, differing)
                continue
            alike = (r for c, r in ended if c.schedule == base.schedule and c.poison == condition.poison)
            if (same := next(alike, None)) is not None:
                differing, atomic = _differing(same, other, index), _by_atomics(same, other, index)
                yield from _depends(work, argument, Kind.DEPENDS_ON_SCHEDULE, condition.schedule, differing & ~atomic)
                yield from _depends(work, argument, Kind.ATOMIC_ORDER, condition.schedule, differing & atomic)


def _unwritten(work: Work, argument: Argument, schedule: str, result: Result, index: int) -> Iterator[Finding]:
    missing = _elements(unwritten(result, index), argument.element)
    if missing.size:
        yield never_written(work.kernel, argument, missing.size, int(missing[0]), schedule)


def never_written(kernel: str, argument: Argument, count: int, first: int, schedule: str) -> Finding:
    """The finding that `count` elements of an output hold what they held before, beginning with `first`."""
    return Finding(
        Kind.UNWRITTEN,
        kernel,
        f"{count} of {argument.size // argument.element} elements of {argument.name} are never written, "
        f"the first is {argument.name}[{first}]",
        (),
        argument.name,
        "device",
        first,
        first * argument.element,
        None,
        schedule,
    )


def _by_atomics(a: Result, b: Result, index: int) -> Mask:
    """Which bytes of an output atomics alone have written in both runs."""
    one, other = a.atomic[index], b.atomic[index]
    if one is None or other is None:
        return np.zeros(len(a.outputs[index]), np.bool_)
    return one & other


def _depends(work: Work, argument: Argument, kind: Kind, schedule: str, bytes_: Mask) -> Iterator[Finding]:
    differing = _elements(bytes_, argument.element)
    if not differing.size:
        return
    at = int(differing[0])
    cause = (
        "with what memory held before the kernel ran"
        if kind is Kind.DEPENDS_ON_GARBAGE
        else f"between the order in which threads run by default and {schedule}"
    )
    nature = ": atomics alone write it, and nothing orders them" if kind is Kind.ATOMIC_ORDER else ""
    yield Finding(
        kind,
        work.kernel,
        f"{differing.size} of {argument.size // argument.element} elements of {argument.name} differ {cause}, "
        f"the first is {argument.name}[{at}]{nature}",
        (),
        argument.name,
        "device",
        at,
        at * argument.element,
        None,
        schedule,
    )
