"""CTRF (Common Test Report Format, ctrf.io): a report for tools that know tests and no verdicts."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.reporting.report import ContractRecord, Report
from mlx_assay.conformance.verdict import Verdict

VERSION = "0.1.0"
"""Of the format: the one that its published examples are in."""
STATUSES = ("passed", "failed", "skipped", "pending", "other")
ELSEWHERE = {Verdict.NOT_RUN: "skipped", Verdict.ORACLES_DISAGREE: "other"}
"""Statuses of what says nothing of the implementation; all else that does not conform has failed."""
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:mlx-assay:case")


def ctrf(report: Report) -> str:
    """The document: JSON of two-space indents, one newline at its end."""
    return msgspec.json.format(msgspec.json.encode(document(report)), indent=2).decode() + "\n"


def document(report: Report) -> dict[str, Any]:
    """Every case as a test, its id as name; verdict, oracle and difference in `extra`."""
    start = _milliseconds(report.started)
    duration = round(report.seconds * 1000)
    counts = Counter(status(record) for record in report.cases)
    summary = {"tests": len(report.cases), **{name: counts[name] for name in STATUSES}}
    return {
        "reportFormat": "CTRF",
        "specVersion": VERSION,
        "reportId": str(uuid.uuid5(NAMESPACE, report.run or f"{report.started} {report.implementation.name}")),
        "timestamp": datetime.fromtimestamp((start + duration) / 1000, UTC).isoformat(timespec="seconds"),
        "generatedBy": f"mlx-assay {report.environment.packages.get('mlx-assay', '')}".strip(),
        "results": {
            "tool": {"name": "mlx-assay", "version": report.environment.packages.get("mlx-assay", "")},
            "summary": {**summary, "start": start, "stop": start + duration, "duration": duration},
            "tests": [_test(record, report.contracts) for record in report.cases],
            "environment": _environment(report),
        },
    }


def status(record: Record) -> str:
    """What CTRF calls a record's verdict."""
    return "passed" if record.conforms else ELSEWHERE.get(record.verdict, "failed")


def _test(record: Record, contracts: Mapping[str, ContractRecord]) -> dict[str, Any]:
    path, _, _ = record.id.partition("?")
    test: dict[str, Any] = {
        "id": str(uuid.uuid5(NAMESPACE, record.id)),
        "name": record.id or "unnamed",
        "status": status(record),
        "duration": round(record.seconds * 1000),
        "suite": path.split("/"),
        "rawStatus": record.verdict.value,
        "tags": record.tags,
        "type": "conformance",
    }
    if record.conforms:
        return test
    explanation = Explanation.of(record, contracts)
    told = [explanation.headline, *(diagnosis.text for diagnosis in explanation.diagnoses), record.replay]
    test["message"] = "\n".join(filter(None, told))
    if explanation.trace:
        test["trace"] = explanation.trace
    if record.output:
        test["stdout"] = record.output.split("\n")
    test["extra"] = {"why": record.why, "oracle": record.oracle, "replay": record.replay, "difference": _plain(record)}
    return test


def _plain(record: Record) -> Any:
    """The difference without its map and histogram, which no tool of this format draws."""
    if record.difference is None:
        return None
    return {name: value for name, value in msgspec.to_builtins(record.difference).items() if name != "pattern"}


def _environment(report: Report) -> dict[str, Any]:
    environment = report.environment
    return {
        "reportName": f"mlx-assay: {report.verdict}",
        "appName": report.implementation.name,
        "commit": report.source.commit,
        "osPlatform": environment.platform,
        "testEnvironment": report.leg or report.executor.name,
        "healthy": report.complete,
        "extra": {
            "device": environment.device,
            "deviceClass": environment.device_class,
            "executor": report.executor.name,
            "packages": environment.packages,
        },
    }


def _milliseconds(started: str) -> int:
    """Since the epoch; 0 for a time that is none."""
    try:
        return max(int(datetime.fromisoformat(started).timestamp() * 1000), 0)
    except (ValueError, OverflowError, OSError):
        return 0
