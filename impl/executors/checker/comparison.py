"""What differs between runs of one kernel: outputs that depend on the schedule, on garbage, or on nothing at all."""

from collections.abc import Iterator, Sequence

import numpy as np

from mlx_assay.impl.executors.checker.finding import Finding, Kind
from mlx_assay.impl.executors.checker.run import Argument, Mask, Result, Work, unwritten

Elements = np.ndarray[tuple[int], np.dtype[np.int64]]
Runs = Sequence[tuple[str, int, Result]]


def _elements(mask: Mask, size: int) -> Elements:
    """The elements of which a byte is marked."""
    found: Elements = np.flatnonzero(mask.reshape(-1, size).any(axis=1)) if mask.size else np.zeros(0, np.int64)
    return found


def _differing(a: Result, b: Result, index: int) -> Mask:
    differ = np.frombuffer(a.outputs[index], np.uint8) != np.frombuffer(b.outputs[index], np.uint8)
    known: Mask = differ & ~(unwritten(a, index) & unwritten(b, index))
    return known


def compared(work: Work, runs: Runs) -> Iterator[Finding]:
    """A finding for each output and each way in which it is not determined."""
    ended = [run for run in runs if run[2].ended]
    outputs = [a for a in work.arguments if a.output]
    for index, argument in enumerate(outputs):
        if not ended or not argument.size:
            continue
        schedule, _, first = ended[0]
        yield from _unwritten(work, argument, schedule, first, index)
        for other_schedule, other_poison, other in ended[1:]:
            if other_schedule == schedule:
                yield from _depends(work, argument, Kind.DEPENDS_ON_GARBAGE, schedule, first, other, index)
            else:
                same = next((r for s, p, r in ended if s == schedule and p == other_poison), None)
                if same is not None:
                    yield from _depends(work, argument, Kind.DEPENDS_ON_SCHEDULE, other_schedule, same, other, index)


def _unwritten(work: Work, argument: Argument, schedule: str, run: Result, index: int) -> Iterator[Finding]:
    missing = _elements(unwritten(run, index), argument.element)
    if missing.size:
        at = int(missing[0])
        yield Finding(
            Kind.UNWRITTEN,
            work.kernel,
            f"{missing.size} of {argument.size // argument.element} elements of {argument.name} are never written, "
            f"the first is {argument.name}[{at}]",
            (),
            argument.name,
            "device",
            at,
            at * argument.element,
            None,
            schedule,
        )


def _depends(
    work: Work, argument: Argument, kind: Kind, schedule: str, a: Result, b: Result, index: int
) -> Iterator[Finding]:
    differing = _elements(_differing(a, b, index), argument.element)
    if not differing.size:
        return
    at = int(differing[0])
    cause = (
        "with what memory held before the kernel ran"
        if kind is Kind.DEPENDS_ON_GARBAGE
        else f"between the order in which threads run by default and {schedule}"
    )
    yield Finding(
        kind,
        work.kernel,
        f"{differing.size} of {argument.size // argument.element} elements of {argument.name} differ {cause}, "
        f"the first is {argument.name}[{at}]",
        (),
        argument.name,
        "device",
        at,
        at * argument.element,
        None,
        schedule,
    )
