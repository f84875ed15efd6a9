"""Cases that do not conform as SARIF 2.1.0, for code scanning: at a line where one is known, else at an operation."""

from __future__ import annotations

import hashlib
import re

from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.rendering.location import location
from mlx_assay.conformance.rendering.overview import Overview
from mlx_assay.conformance.reporting import sarif as shared
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.reporting.sarif import Object
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict

MOST = 5_000
"""Results that GitHub keeps of a run."""
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
RULES = {
    Verdict.SAME_BITS: "The encodings are the same.",
    Verdict.SAME_VALUE: "Only encodings differ that a rule of the contract lets differ, and more is needed.",
    Verdict.WITHIN_ULP: "The result lies within a distance, and more is needed.",
    Verdict.WITHIN_BOUND: "The result lies within a bound, and more is needed.",
    Verdict.DIFFERS: "The result differs from what an independent reference computes.",
    Verdict.ORACLES_DISAGREE: "The references do not agree, so that nothing can be said.",
    Verdict.UNSUPPORTED: "The implementation lacks the operation, or does not take its input.",
    Verdict.ERROR: "The call raised, changed its input, or returned no array of the right dtype and shape.",
    Verdict.CRASHED: "The implementation's process died.",
    Verdict.TIMED_OUT: "The implementation took longer than a case may take.",
    Verdict.NOT_RUN: "The case could not be judged.",
}
"""A rule a verdict: what is wrong where a case does not conform."""


def sarif(report: Report) -> str:
    """The log file: JSON of two-space indents, one newline at its end."""
    return shared.encoded(log(report)).decode()


def log(report: Report) -> Object:
    """One run with a result a case that does not conform, MOST at most."""
    overview = Overview.of(report)
    results = [_result(record, report) for record in overview.failing[:MOST]]
    left = len(overview.failing) - len(results)
    notes = [
        *overview.alarms,
        *overview.notes,
        *([f"{left} more cases that do not conform are left out."] if left else []),
    ]
    invocation: Object = {
        "executionSuccessful": report.complete,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": [
            {"level": "warning", "message": {"text": note}} for note in dict.fromkeys(notes)
        ],
    }
    if TIME.fullmatch(started := shared.utc(report.started)):
        invocation["startTimeUtc"] = started
    rules = [_rule(verdict, text) for verdict, text in RULES.items()]
    version = report.environment.packages.get("mlx-assay", "unknown")
    return shared.log(version, rules, invocation, results, properties={"verdict": report.verdict})


def _rule(verdict: Verdict, text: str) -> Object:
    return {
        "id": verdict.value,
        "name": "".join(word.capitalize() for word in verdict.value.split("-")),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": _level(verdict)},
    }


def _level(verdict: Verdict) -> str:
    return "warning" if verdict in INCOMPLETE else "error"


def _result(record: Record, report: Report) -> Object:
    explanation = Explanation.of(record, report.contracts)
    told = [explanation.headline or record.id, *(one.text for one in explanation.diagnoses), record.why, record.replay]
    found: Object = {
        "logicalLocations": [{"name": record.operation, "fullyQualifiedName": record.id, "kind": "function"}]
    }
    if place := location(record, report.implementation.name):
        found["physicalLocation"] = shared.physical(place.file, {"startLine": max(place.line, 1)})
    return {
        "ruleId": record.verdict.value,
        "ruleIndex": list(RULES).index(record.verdict),
        "level": _level(record.verdict),
        "message": {"text": "\n".join(filter(None, told)) or record.verdict.value},
        "locations": [found],
        "partialFingerprints": {"caseId/v1": hashlib.sha256(record.id.encode()).hexdigest()},
        "properties": {
            "case": record.id,
            "dtype": record.dtype,
            "tags": record.tags,
            "oracle": record.oracle,
            "rule": record.difference.rule if record.difference else "",
            "replay": record.replay,
        },
    }
