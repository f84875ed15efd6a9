"""Shards: one run split over machines, and put together again only if every part is there, once, and of that run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from mlx_assay.conformance.gating.reason import Reason, cases, incomplete, named, some
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.options import MOST_SHARDS
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.intake import Taken, printed
from mlx_assay.conformance.reporting.report import Environment, OracleState, Report, Shard, Stage, Totals, outcome
from mlx_assay.conformance.reporting.stages import Tally
from mlx_assay.conformance.splitting import whole

OF_A_MACHINE = frozenset(
    {"compiler", "cpu", "threads", "device_name", "architecture", "memory_size", "resource_limit"}
) | {
    "max_buffer_length",
    "max_recommended_working_set_size",
}
"""Details of an executor that two machines of one device class may have otherwise: places, names and sizes."""
TOGETHER = "merge the shards of one run, each once"


def merged(parts: Sequence[Taken], where: str, suite: Suite) -> tuple[Report | None, list[Reason]]:
    """The run that the shards are parts of, and why they are not all of it; no report where there is a reason."""
    reasons = [incomplete(where, text, mend) for text, mend in _apart(parts)]
    if reasons:
        return None, reasons
    ordered = sorted(parts, key=lambda part: _shard(part).index)
    ids = [record.id for part in ordered for record in part.report.cases]
    first = _shard(ordered[0])
    if twice := [name for name, count in Counter(ids).items() if count > 1]:
        return None, [incomplete(where, f"in two shards: {cases(twice)}", TOGETHER)]
    if whole(ids) != first.whole:
        return None, [incomplete(where, "the shards do not hold the cases that the run was split into", TOGETHER)]
    return _joined([part.report for part in ordered], suite), []


def _apart(parts: Sequence[Taken]) -> Iterator[tuple[str, str]]:
    """What keeps shards from being one run."""
    alone = [part.file for part in parts if part.report.shard is None]
    if alone:
        yield f"{named(alone)}: not a shard, among shards", TOGETHER
        return
    first = min(parts, key=lambda part: _shard(part).index)
    count = _shard(first).count
    for part in parts:
        shard = _shard(part)
        if not (1 <= shard.index <= shard.count <= MOST_SHARDS):
            text = f"expected shard 1 to {MOST_SHARDS} but got {shard.index} of {shard.count}"
            yield f"{printed(part.file)}: {text}", TOGETHER
        if differing := _foreign(first.report, part.report):
            yield f"{printed(part.file)} is a shard of another run: another {', '.join(differing)}", TOGETHER
    places = Counter(_shard(part).index for part in parts)
    if repeated := sorted(index for index, times in places.items() if times > 1):
        yield f"repeated: shard {some([str(index) for index in repeated])} of {count}", TOGETHER
    missing = [str(index) for index in range(1, min(count, MOST_SHARDS) + 1) if index not in places]
    if missing:
        yield f"missing: shard {some(missing)} of {count}", "run it, and give its report too"


def _foreign(one: Report, other: Report) -> list[str]:
    """In what two shards differ that those of one run share."""
    mine, yours = one.shard, other.shard
    assert mine is not None
    assert yours is not None
    facts = {
        "count": (mine.count, yours.count),
        "set of cases": (mine.whole, yours.whole),
        "leg": (one.leg, other.leg),
        "suite": (one.suite, other.suite),
        "commit": (one.source, other.source),
        "device class": (one.environment.device_class, other.environment.device_class),
        "set of packages": (one.environment.packages, other.environment.packages),
        "implementation": (
            (one.implementation.name, one.implementation.operations),
            (other.implementation.name, other.implementation.operations),
        ),
        "executor": (one.executor.name, other.executor.name),
        **_settings(one, other),
        "selection": (one.selection, other.selection),
    }
    return [name for name, (left, right) in facts.items() if left != right]


def _settings(one: Report, other: Report) -> dict[str, tuple[object, object]]:
    """What bits and verdicts may depend on, of the executor, the implementation and the machine, each by its name."""
    facts: dict[str, tuple[object, object]] = {
        "Python": (one.environment.python, other.environment.python),
        "machine": (one.environment.machine, other.environment.machine),
        "device": (one.environment.device, other.environment.device),
        "graph compiler": (bool(one.environment.graph_compiler), bool(other.environment.graph_compiler)),
    }
    for title, mine, yours in (
        ("executor's", one.executor.details, other.executor.details),
        ("implementation's", one.implementation.details, other.implementation.details),
    ):
        for name in sorted((mine.keys() | yours.keys()) - OF_A_MACHINE):
            facts[f"{title} {printed(name, 60)}"] = (mine.get(name), yours.get(name))
    for name in one.environment.oracles.keys() & other.environment.oracles.keys():
        pair = one.environment.oracles[name], other.environment.oracles[name]
        if all(state.state == "ok" for state in pair):
            facts[f"version of {printed(name, 60)}"] = (pair[0].version, pair[1].version)
    return facts


def _joined(reports: Sequence[Report], suite: Suite) -> Report:
    records = _in_order(reports, suite)
    declared = sum(report.totals.declared for report in reports)
    complete = all(report.complete for report in reports)
    altered = sorted({name for report in reports for name in report.altered})
    starts = [datetime.fromisoformat(report.started) for report in reports]
    started = min(starts)
    ended = max(start + timedelta(seconds=report.seconds) for start, report in zip(starts, reports, strict=True))
    runs = "\n".join(report.run for report in reports)
    return msgspec.structs.replace(
        reports[0],
        run=hashlib.sha256(runs.encode()).hexdigest()[:32],
        started=started.isoformat(timespec="seconds"),
        seconds=round((ended - started).total_seconds(), 3),
        shard=None,
        environment=_environment(reports),
        totals=Totals.of(declared, records),
        complete=complete,
        altered=altered,
        stages=_stages(reports),
        verdict=outcome(declared, records, complete and not altered),
        contracts={name: told for report in reports for name, told in report.contracts.items()},
        cases=records,
    )


def _stages(reports: Sequence[Report]) -> list[Stage]:
    tally = Tally()
    for report in reports:
        tally.join(report.stages)
    return tally.stages()


def _in_order(reports: Sequence[Report], suite: Suite) -> list[Record]:
    """Cases in the order of the selection where this suite knows it, else shard by shard."""
    records = [record for report in reports for record in report.cases]
    try:
        order = {case_id: place for place, case_id in enumerate(suite.selected(reports[0]).ids)}
    except ValueError:
        return records
    return sorted(records, key=lambda record: order.get(record.id, len(order)))


def _environment(reports: Sequence[Report]) -> Environment:
    """The first shard's, with the oracles of all; one that was not sound anywhere is not."""
    oracles: dict[str, OracleState] = {}
    for report in reports:
        for name, state in report.environment.oracles.items():
            if name not in oracles or state.state != "ok":
                oracles[name] = state
    return msgspec.structs.replace(reports[0].environment, oracles=oracles)


def _shard(part: Taken) -> Shard:
    assert part.report.shard is not None
    return part.report.shard
