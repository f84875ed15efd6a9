"""The comparison: every release asked through every door, several at a time, and the report of what drifted."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version

from mlx_assay.conformance.versions import doors
from mlx_assay.conformance.versions.doors import Watch
from mlx_assay.conformance.versions.drift import Answers, drifts
from mlx_assay.conformance.versions.inputs import Input
from mlx_assay.conformance.versions.report import (
    SCHEMA,
    Asked,
    DoorName,
    Drift,
    Fault,
    VersionsReport,
    verdict,
)

AT_A_TIME = 4
"""Environments that are made, and releases that are asked, at once."""

Door = Callable[[str, Sequence[Input], Watch], Answers]


def known_doors() -> dict[DoorName, Door]:
    """Every door by its name."""
    return {"cpu": doors.cpu, "metal": doors.metal}


def compare(
    releases: Sequence[str],
    names: Sequence[DoorName],
    inputs: Sequence[Input],
    queries: Sequence[str],
    tell: Callable[[str], None],
) -> VersionsReport:
    """Asks releases (from old to new) and reports; `tell` gets a line at each step, from any thread.

    KeyboardInterrupt ends what runs, and passes.
    """
    started, clock = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    asked: list[Asked] = []
    found: list[Drift] = []
    faults: list[Fault] = []
    answered = _answered(releases, names, inputs, asked, Watch(tell))
    not_asked = {}
    for name in names:
        both = drifts(inputs, name, answered[name])
        found += both[0]
        faults += both[1]
        missing = [_missing(inputs, answers) for answers in answered[name].values()]
        not_asked[name] = sorted(set().union(*missing))
    return VersionsReport(
        schema=SCHEMA,
        started=started,
        seconds=round(time.monotonic() - clock, 3),
        version=version("mlx-assay"),
        python=platform.python_version(),
        platform=platform.platform(),
        releases=list(releases),
        queries=list(queries),
        inputs=_counted(inputs),
        asked=asked,
        not_asked={name: missing for name, missing in not_asked.items() if missing},
        drifts=found,
        faults=faults,
        verdict=verdict(asked, found, faults),
    )


def _answered(
    releases: Sequence[str],
    names: Sequence[DoorName],
    inputs: Sequence[Input],
    asked: list[Asked],
    watch: Watch,
) -> dict[DoorName, dict[str, Answers]]:
    """The answers by door and release. Metal's kernels run in this process, one release after the other."""
    gathered: dict[DoorName, dict[str, Answers]] = {name: {} for name in names}
    with ThreadPoolExecutor(AT_A_TIME) as pool, ThreadPoolExecutor(1) as own:
        running: list[tuple[DoorName, str, Future[tuple[Answers, float]]]] = [
            (name, release, (own if name == "metal" else pool).submit(_timed, name, release, inputs, watch))
            for name in names
            for release in releases
        ]
        for name, release, future in running:
            try:
                answers, seconds = future.result()
            except doors.Shut as shut:
                watch.tell(f"{release} {name}: {shut}")
                asked.append(Asked(release=release, door=name, answered=False, reason=str(shut)))
                continue
            except KeyboardInterrupt:
                watch.give_up()
                raise
            gathered[name][release] = answers
            asked.append(Asked(release=release, door=name, answered=True, seconds=round(seconds, 3)))
    return gathered


def _timed(name: DoorName, release: str, inputs: Sequence[Input], watch: Watch) -> tuple[Answers, float]:
    watch.check()
    clock = time.monotonic()
    answers = known_doors()[name](release, inputs, watch)
    seconds = time.monotonic() - clock
    watch.tell(f"{release} {name}: answered in {seconds:.1f} s")
    return answers, seconds


def _missing(inputs: Sequence[Input], answers: Answers) -> set[str]:
    return {given.operation for given, answer in zip(inputs, answers, strict=True) if answer is None}


def _counted(inputs: Sequence[Input]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for given in inputs:
        counts.setdefault(given.operation, Counter())[given.dtype] += 1
    return {operation: dict(counted) for operation, counted in sorted(counts.items())}
