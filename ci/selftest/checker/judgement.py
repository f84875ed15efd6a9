"""What a row of the corpus has against the checker's findings: faults missed, lines not named, findings too many."""

from collections.abc import Iterable, Iterator, Sequence

from checker.corpus import Kernel, Mark

from mlx_assay.impl.executors.checker.finding import Access, Finding, Kind

_DEPENDENCES = {Kind.DEPENDS_ON_SCHEDULE, Kind.DEPENDS_ON_GARBAGE, Kind.ATOMIC_ORDER}
_ORDERLESS = {
    *(Kind.RACE, Kind.SIMDGROUP_RACE, Kind.THREADGROUP_RACE, Kind.BARRIER_FLAGS),
    *(Kind.DIVERGENT_BARRIER, Kind.DIVERGENT_SIMD),
}
_VALUELESS = {Kind.OUT_OF_BOUNDS, Kind.MISALIGNED, Kind.UNINITIALISED, Kind.INACTIVE_LANE}
_STOPPED = {Kind.DIVERGENT_BARRIER, Kind.THREADGROUP_MEMORY, Kind.THREADS, Kind.HANG}

# Of these two threads take part, and both are named.
_OF_TWO = {Kind.RACE, Kind.SIMDGROUP_RACE, Kind.THREADGROUP_RACE, Kind.SAME_VALUE_WRITE, Kind.BARRIER_FLAGS}


def consequences(kinds: Iterable[str]) -> set[Kind]:
    """Kinds that have no line of their own and follow from these faults."""
    found: set[Kind] = set()
    for kind in kinds:
        if kind in _ORDERLESS | _VALUELESS:
            found |= _DEPENDENCES
        if kind in _STOPPED:
            found |= {*_DEPENDENCES, Kind.UNWRITTEN}
    return found


def _at(access: Access, mark: Mark) -> bool:
    return (access.place.file, access.place.line) == (mark.file, mark.line)


def _meets(finding: Finding, mark: Mark) -> bool:
    """Whether this finding is what the mark asks for."""
    return (
        finding.kind in mark.kinds
        and (not mark.file or any(_at(access, mark) for access in finding.accesses))
        and (not mark.array or finding.array == mark.array)
        and (mark.index is None or finding.index == mark.index)
    )


def _told(finding: Finding) -> str:
    lines = ", ".join(f"{a.how} at {a.place.file} line {a.place.line}" for a in finding.accesses)
    barrier = f", barrier at {finding.barrier.file} line {finding.barrier.line}" if finding.barrier else ""
    return f"{finding.kind} {finding.array}[{finding.index}] ({lines}{barrier}) under {finding.schedule}"


def _wanted(mark: Mark) -> str:
    index = "" if mark.index is None else f"[{mark.index}]"
    place = f" at {mark.file} line {mark.line}" if mark.file else ""
    return f"{mark.role} {'|'.join(mark.kinds)} {mark.array}{index}{place}"


def _details(kernel: Kernel, finding: Finding) -> Iterator[str]:
    """What is wrong with a finding in itself."""
    if finding.kernel != kernel.name:
        yield f"of kernel {finding.kernel!r} instead of {kernel.name!r}"
    if not finding.message.strip():
        yield "without a message"
    for access in finding.accesses:
        place = access.place
        if place.file in kernel.texts and place.text != kernel.line(place.file, place.line):
            yield f"quotes {place.text!r}"
    if finding.kind in _OF_TWO:
        if len(finding.accesses) != 2:
            yield f"names {len(finding.accesses)} accesses"
        elif not all(access.thread and access.threadgroup for access in finding.accesses):
            yield "does not name both threads"
        elif len({(access.thread, access.threadgroup) for access in finding.accesses}) == 1:
            yield "names one thread twice"


def _expected(kernel: Kernel, finding: Finding) -> bool:
    marks = [mark for mark in kernel.marks if finding.kind in mark.kinds]
    lines = [mark for mark in marks if mark.file]
    if finding.accesses and lines:
        principal = [mark for mark in lines if mark.role != "other"]
        named = any(_at(access, mark) for access in finding.accesses for mark in principal)
        return named and all(any(_at(access, mark) for mark in lines) for access in finding.accesses)
    faults = [kind for mark in kernel.marks if mark.role == "fault" for kind in mark.kinds]
    return finding.kind in consequences(faults) or any(not mark.file and _meets(finding, mark) for mark in marks)


def objections(kernel: Kernel, findings: Sequence[Finding]) -> list[str]:
    """Everything that differs from what the kernel's marks say; empty where the checker is right."""
    required = [mark for mark in kernel.marks if mark.role in ("fault", "other", "note")]
    barriers = [mark for mark in kernel.marks if mark.role == "barrier"]
    found = [f"missed: {_wanted(mark)}" for mark in required if not any(_meets(f, mark) for f in findings)]
    for finding in findings:
        if not _expected(kernel, finding):
            found.append(f"not meant: {_told(finding)}")
        found += [f"{detail}: {_told(finding)}" for detail in _details(kernel, finding)]
        if finding.kind is Kind.BARRIER_FLAGS:
            at = finding.barrier
            if at is None or (at.file, at.line) not in {(mark.file, mark.line) for mark in barriers}:
                found.append(f"wrong barrier: {_told(finding)}")
    return found
