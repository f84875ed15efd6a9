"""A check as SARIF 2.1.0 (OASIS), for code scanning and editors."""

from __future__ import annotations

from mlx_assay.conformance.checking.report import Access, CheckReport, Diagnostic, Location
from mlx_assay.conformance.checking.rules import RULES
from mlx_assay.conformance.reporting import sarif
from mlx_assay.conformance.reporting.sarif import Object


def encode(report: CheckReport) -> bytes:
    """The log file: JSON of two-space indents, one newline at its end."""
    return sarif.encoded(log(report))


def log(report: CheckReport) -> Object:
    """One run of one tool; every kind is a rule, found or not."""
    results = [_result(report, finding) for finding in report.findings]
    return sarif.log(report.version, [_rule(kind) for kind in RULES], _invocation(report), results)


def _rule(kind: str) -> Object:
    rule = RULES[kind]
    return {
        "id": kind,
        "name": "".join(word.capitalize() for word in kind.split("-")),
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": f"{rule.title}. {rule.help}"},
        "help": {"text": rule.help, "markdown": rule.help},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _invocation(report: CheckReport) -> Object:
    return {
        "executionSuccessful": report.complete,
        "startTimeUtc": sarif.utc(report.started),
        "arguments": [report.asked.target, *report.asked.arguments],
        "toolExecutionNotifications": [
            {
                "descriptor": {"id": problem.what},
                "level": "error",
                "message": {"text": problem.message},
                "locations": _locations(problem.location, ""),
            }
            for problem in report.problems
        ],
    }


def _result(report: CheckReport, finding: Diagnostic) -> Object:
    kernel = report.kernels[finding.kernel].name
    related = [_related(access, finding) for access in finding.accesses[1:]]
    if finding.barrier is not None:
        related.append({**_location(finding.barrier, kernel), "message": {"text": "the barrier"}})
    if finding.launch is not None and finding.accesses:
        related.append({**_location(finding.launch, ""), "message": {"text": "launched here"}})
    return {
        "ruleId": finding.kind,
        "ruleIndex": list(RULES).index(finding.kind),
        "level": finding.severity.value,
        "message": {"text": finding.message or RULES[finding.kind].title},
        "locations": _locations(finding.location, kernel),
        "relatedLocations": [{"id": number, **place} for number, place in enumerate(related)],
        "occurrenceCount": finding.count,
        "properties": {
            "kernel": kernel,
            "array": finding.array,
            "index": finding.index,
            "schedule": finding.schedule,
        },
    }


def _related(access: Access, finding: Diagnostic) -> Object:
    return {**_location(access.location, ""), "message": {"text": f"{access.how} of {finding.array or 'it'}"}}


def _locations(place: Location | None, kernel: str) -> list[Object]:
    return [_location(place, kernel)] if place is not None or kernel else []


def _location(place: Location | None, kernel: str) -> Object:
    """A place in a file where there is one; the kernel by its name beside it, or alone."""
    found: Object = {}
    if kernel:
        found["logicalLocations"] = [{"name": kernel, "kind": "function"}]
    if place is None or not place.file:
        return found
    region: Object = {"startLine": max(place.line, 1), "startColumn": max(place.column, 1)}
    if place.end_column > place.column:
        region["endColumn"] = place.end_column
    if place.text:
        region["snippet"] = {"text": place.text}
    found["physicalLocation"] = sarif.physical(place.file, region)
    return found
