"""Annotations: the cases to look at first, as workflow commands that GitHub shows beside a run and its files."""

from __future__ import annotations

from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.rendering.location import location
from mlx_assay.conformance.rendering.overview import Overview
from mlx_assay.conformance.reporting.report import Report

MOST = 10
"""Errors that GitHub shows of a step."""
LONGEST = 1000


def annotated(report: Report) -> str:
    """A line each for MOST cases at most; the last tells of the others. Empty where every case conforms."""
    overview = Overview.of(report)
    shown = overview.varied[: MOST if len(overview.failing) <= MOST else MOST - 1]
    lines = [_line(record, report) for record in shown]
    if left := len(overview.failing) - len(shown):
        lines.append(_command({"title": f"{left} more cases"}, "They do not conform either: see the report."))
    if not lines and report.verdict != "conforms":
        lines.append(_command({"title": report.verdict}, " ".join([overview.sentence, *overview.alarms])))
    return "".join(lines)


def _line(record: Record, report: Report) -> str:
    explanation = Explanation.of(record, report.contracts)
    found = location(record, report.implementation.name)
    properties = {"file": found.file, "line": str(found.line)} if found else {}
    told = [explanation.headline or record.id]
    if explanation.diagnoses:
        told.append(explanation.first)
    return _command({**properties, "title": f"{record.verdict.value}: {record.id}"}, "\n".join([*told, record.replay]))


def _command(properties: dict[str, str], message: str) -> str:
    given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::error {given}::{_data(message[:LONGEST])}\n"


def _data(text: str) -> str:
    """As GitHub's toolkit escapes a message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """As GitHub's toolkit escapes a property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
