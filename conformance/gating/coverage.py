"""Coverage: whether a report holds the cases that it should, by this suite's own selection and the policy's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.gating.policy import Leg
from mlx_assay.conformance.gating.reason import Reason, cases, incomplete
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Report

EDITED = "take the file as the run wrote it, or run again"


def known(report: Report, suite: Suite) -> bool:
    """Whether a report's cases are those of the installed suite, by the digest of its fixtures."""
    return report.suite is not None and report.suite.fixtures == suite.installed.fixtures


def covered(report: Report, leg: Leg, where: str, suite: Suite) -> list[Reason]:
    """What a report lacks, or has beyond what it should."""
    told = [incomplete(where, text, mend) for text, mend in _counted(report, leg, suite)]
    return told + complete(report, where, suite)


def complete(report: Report, where: str, suite: Suite) -> list[Reason]:
    """What a report lacks of its own selection, or has beyond it, where this suite has the fixtures that it is of."""
    if not known(report, suite):
        return []
    told = [*_selected(report, suite), *_strange(report, suite)]
    return [incomplete(where, text, mend) for text, mend in told]


def _counted(report: Report, leg: Leg, suite: Suite) -> Iterator[tuple[str, str]]:
    if len(report.cases) < leg.cases:
        yield f"expected at least {counted(leg.cases, 'case')} but got {len(report.cases)}", "run the whole tier"
    for text, least in leg.least.items():
        count = len(meant(report.cases, text, suite, known(report, suite)))
        if count < least:
            yield f"expected at least {counted(least, 'case')} of {text} but got {count}", "run them too"


def _selected(report: Report, suite: Suite) -> Iterator[tuple[str, str]]:
    try:
        selection = suite.selected(report)
    except ValueError as error:
        yield f"this suite selects nothing for what it asks: {printed(error)}", EDITED
        return
    if selection.not_asked != report.selection.not_asked:
        yield "the operations that it did not ask are not those that the implementation lacks", EDITED
    expected = selection.ids
    got = [record.id for record in report.cases]
    if expected == got:
        return
    wanted, there = set(expected), set(got)
    missing = [name for name in expected if name not in there]
    beyond = [name for name in got if name not in wanted]
    if missing:
        yield f"missing of its selection: {cases(missing)}", "run them too"
    if beyond:
        yield f"not of its selection: {cases(beyond)}", EDITED
    if not missing and not beyond:
        yield "its cases are not in the order of its selection", EDITED


def _strange(report: Report, suite: Suite) -> Iterator[tuple[str, str]]:
    found: dict[str, list[str]] = {}
    without = frozenset(report.selection.without)
    for record in report.cases:
        if what := suite.strange(record, without):
            found.setdefault(what, []).append(record.id)
    for what, ids in found.items():
        yield f"{what}: {cases(ids)}", EDITED


def meant(records: Sequence[Record], text: str, suite: Suite, known_fixtures: bool) -> list[Record]:
    """The records that a query means."""
    return [record for record in records if suite.means(text, record, known_fixtures)]
