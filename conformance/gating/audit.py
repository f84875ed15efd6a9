"""The audit: everything that a report says of itself, worked out anew from its cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator

from mlx_assay.conformance.gating import replaying
from mlx_assay.conformance.gating.consistency import contradictions
from mlx_assay.conformance.gating.reason import Reason, cases, incomplete, some
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.device import device_class
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Report, Totals, outcome
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case

AGAIN = "run it again"
EDITED = "take the file as the run wrote it, or run again"
LONGEST_SECONDS = 10.0**7
LARGEST_COUNT = 2**63
UNJUDGED = (Verdict.CRASHED, Verdict.NOT_RUN)
"""Verdicts of a case whose judging process died, of which nothing else is known."""
CONFORMING = (Verdict.SAME_BITS, Verdict.SAME_VALUE, Verdict.WITHIN_ULP, Verdict.WITHIN_BOUND)


def audit(report: Report, where: str, suite: Suite) -> list[Reason]:
    """Why a report cannot be relied on; nothing where all that it says of itself follows from its cases.

    Cases that do not conform are no reason here, cases that were left unjudged are.
    """
    told = [*_of_run(report), *_of_totals(report), *_of_cases(report, suite)]
    return [incomplete(where, text, mend) for text, mend in told]


def _of_run(report: Report) -> Iterator[tuple[str, str]]:
    for text in contradictions(report):
        yield text, EDITED
    if not _seconds(report.seconds):
        yield f"expected seconds from 0 to {LONGEST_SECONDS:.0f} but got {report.seconds!r}", EDITED
    if not report.complete:
        yield "the run did not come to its end", AGAIN
    if report.altered:
        names = some([printed(name) for name in report.altered])
        yield f"files of the suite changed during the run: {names}", "keep them as they are and run again"
    if not report.executor.name:
        yield "no executor is named, so nothing tells where kernels ran", AGAIN
    name, told, details = report.executor.name, report.environment.device_class, report.executor.details
    shown = device_class({**details, "executor": name}, report.environment.machine)
    if told != shown or details.get("executor", name) != name:
        text = f"executor {printed(name)!r} and device class {printed(told)!r} do not go together"
        yield f"{text}: what the executor says of itself shows {printed(shown)!r}", EDITED
    if len(set(report.implementation.operations)) < len(report.implementation.operations):
        yield "an operation of the implementation stands twice", EDITED


def _of_totals(report: Report) -> Iterator[tuple[str, str]]:
    declared = report.totals.declared
    if not report.cases:
        yield "it holds no case", "select cases, and run them"
    if declared != len(report.cases):
        yield f"{declared} cases were declared but {len(report.cases)} stand in it", AGAIN
    if report.totals != Totals.of(declared, report.cases):
        yield "its totals are not those of its cases", EDITED
    if report.verdict != outcome(declared, report.cases, report.complete and not report.altered):
        yield f"its verdict {report.verdict!r} does not follow from its cases", EDITED
    failing = {record.operation for record in report.cases if not record.conforms}
    if unasked := sorted(report.contracts.keys() - failing):
        yield f"it tells of contracts without a failing case: {printed(some(unasked))}", EDITED


Check = Callable[[Record], bool]


def _of_cases(report: Report, suite: Suite) -> Iterator[tuple[str, str]]:
    """One reason a kind of fault, however many cases have it."""
    counts = Counter(record.id for record in report.cases)
    if len(counts) < len(report.cases):
        yield f"twice in it: {cases([name for name, count in counts.items() if count > 1])}", EDITED
    operations = set(report.implementation.operations)
    sound = {name for name, oracle in report.environment.oracles.items() if oracle.state == "ok"}
    written = [replaying.tail(record) for record in report.cases]
    tails = {text for text in set(written) if text is not None and replaying.sound(text, report)}
    checks: list[tuple[str, str, Check]] = [
        ("ids that are none", EDITED, lambda record: suite.case(record.id) is None),
        ("of another operation or dtype than the id", EDITED, lambda record: not _of_id(record, suite)),
        ("of an operation that the implementation lacks", EDITED, lambda record: _lacking(record, operations)),
        ("verdict and conformance do not go together", EDITED, _contradicts),
        ("conforming, with what a failure tells", EDITED, _conforms_with_message),
        ("without the command that replays it", EDITED, lambda record: replaying.tail(record) not in tails),
        ("numbers that cannot be", EDITED, lambda record: not _numbers(record)),
        ("not run", AGAIN, lambda record: record.verdict is Verdict.NOT_RUN),
        (
            "oracles disagree",
            "mlx-assay doctor tells which oracle is at fault",
            lambda record: record.verdict is Verdict.ORACLES_DISAGREE,
        ),
        ("an oracle is missing", "install it: mlx-assay doctor", lambda record: bool(record.missing)),
        ("no sound oracle judged", "mlx-assay doctor", lambda record: _unjudged(record, sound)),
    ]
    suspects = [
        record
        for record, text in zip(report.cases, written, strict=True)
        if text not in tails or not _plain(record, suite.case(record.id), operations, sound)
    ]
    for what, mend, check in checks:
        if found := [record.id for record in suspects if check(record)]:
            yield f"{what}: {cases(found)}", mend


def _plain(record: Record, case: Case | None, operations: set[str], sound: set[str]) -> bool:
    """Whether a record passes every check at one glance: that of a case that conforms, as nearly all do."""
    return (
        record.verdict in CONFORMING
        and record.conforms
        and case is not None
        and case.operation == record.operation
        and case.dtype == record.dtype
        and record.operation in operations
        and not (_tells(record) or record.missing)
        and record.oracle in record.oracles
        and not _unjudged(record, sound)
        and _numbers(record)
    )


def _of_id(record: Record, suite: Suite) -> bool:
    case = suite.case(record.id)
    return case is None or (case.operation, case.dtype) == (record.operation, record.dtype)


def _lacking(record: Record, operations: set[str]) -> bool:
    return record.verdict is not Verdict.UNSUPPORTED and record.operation not in operations


def _contradicts(record: Record) -> bool:
    return record.conforms is not (record.verdict in CONFORMING)


def _conforms_with_message(record: Record) -> bool:
    return record.conforms and _tells(record)


def _tells(record: Record) -> bool:
    """Whether it has what only a failure tells."""
    kept = record.tensors or record.tensors_sha256
    return bool(record.message or record.difference or record.output or kept)


def _unjudged(record: Record, sound: set[str]) -> bool:
    """Whether nobody judged, or someone whose self-test did not hold."""
    if record.verdict in UNJUDGED or record.verdict is Verdict.ORACLES_DISAGREE:
        return False
    known = set(record.oracles)
    return not known or record.oracle not in known or not known <= sound or len(known) < len(record.oracles)


def _numbers(record: Record) -> bool:
    least = 0 if record.verdict in UNJUDGED else 1
    counts = least <= record.subcases < LARGEST_COUNT and 0 <= record.launches < LARGEST_COUNT
    if not (counts and _seconds(record.seconds)):
        return False
    difference = record.difference
    if difference is None:
        return True
    distance = difference.worst_ulp is None or 0 <= difference.worst_ulp < 2 * LARGEST_COUNT
    return distance and 1 <= difference.count <= difference.total < LARGEST_COUNT


def _seconds(value: float) -> bool:
    return math.isfinite(value) and 0 <= value <= LONGEST_SECONDS
