"""The summary: a report in a few lines of plain text."""

from __future__ import annotations

from pathlib import Path

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.quotation import passage as passage
from mlx_assay.conformance.quotation import printable as printable
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.environment import here, packages
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.reporting.stages import table
from mlx_assay.conformance.verdict import Verdict

WORST = 5


def header(options: Options) -> list[str]:
    """What is about to be judged, and on what."""
    versions = packages()
    executor, device = here()
    told = (
        f"mlx-assay {versions.get('mlx-assay', '?')}: implementation {options.implementation or 'mlx_assay.impl'}, "
        f"mlx {versions.get('mlx', 'missing')}, device {device}, executor {options.executor or executor}, "
        f"tier {options.tier}, seed {options.seed}"
    )
    return [printable(told)]


def closing(report: Report, path: Path | None, cpu: float = 0.0) -> list[str]:
    """Stages where they were counted, counts, oracles, what is missing, and the verdict of the run in one word.

    `cpu` are the CPU seconds of all its processes, if they are known.
    """
    totals = report.totals
    counts = ", ".join(f"{count} {verdict.value}" for verdict, count in totals.verdicts().items())
    lines = table(report.stages, cpu, report.seconds)
    lines += [f"cases: {totals.executed} of {totals.declared} executed" + (f": {counts}" if counts else "")]
    judging = sorted({name for record in report.cases for name in record.oracles})
    lines.append(f"oracles: {', '.join(judging) or 'none'}")
    missing = sorted({name for record in report.cases for name in record.missing})
    lines += [f"missing oracle: {name}{_reason(report, name)}" for name in missing]
    if report.selection.without:
        lines.append(f"left out on request: {', '.join(report.selection.without)}")
    if report.selection.not_asked:
        lines.append(f"not asked (the implementation lacks them): {', '.join(report.selection.not_asked)}")
    if report.executor.name:
        lines.append(f"executor: {report.executor.name}; device: {report.environment.device or 'unknown'}")
    if report.executor.details.get("checked") == "yes":
        launches = sum(record.launches for record in report.cases)
        cases = sum(record.launches > 0 for record in report.cases)
        lines.append(f"checked: {counted(launches, 'launch', 'launches')} of kernels in {counted(cases, 'case')}")
    if not report.environment.graph_compiler:
        lines.append("not fused: MLX finds no g++ here, so compiled graphs ran operation by operation")
    if report.shard:
        lines.append(f"shard: {report.shard.index} of {report.shard.count}; mlx-assay merge joins them")
    if path:
        lines.append(f"report: {path}")
    reasons = "; ".join(incomplete(report))
    lines.append(f"{report.verdict} in {report.seconds:.1f} s{f' ({reasons})' if reasons else ''}")
    return [printable(line) for line in lines]


def _reason(report: Report, oracle: str) -> str:
    state = report.environment.oracles.get(oracle)
    return f" ({state.reason})" if state and state.reason else ""


def incomplete(report: Report) -> list[str]:
    """Why a run is incomplete; empty for one that is not."""
    if report.verdict != "incomplete":
        return []
    totals = report.totals
    reasons = []
    if not totals.declared:
        reasons.append("nothing was selected")
    if totals.executed < totals.declared:
        reasons.append(f"{counted(totals.declared - totals.executed, 'case')} did not run")
    if totals.not_run:
        reasons.append(f"{totals.not_run} not run")
    if totals.oracles_disagree:
        reasons.append(f"oracles disagree on {totals.oracles_disagree}")
    if report.altered:
        reasons.append(f"files of the suite changed meanwhile: {', '.join(report.altered[:3])}")
    if report.executor.details.get("checked") == "yes" and not any(record.launches for record in report.cases):
        reasons.append("no kernel was launched under the checker")
    if any(record.missing for record in report.cases):
        reasons.append("an oracle is missing")
    return reasons


def worst(report: Report) -> list[str]:
    """The cases to look at first, a line each: what could not be compared, then the largest differences."""
    return [f"{record.verdict.value}: {passage(record.message or record.id)}" for record in failing(report)[:WORST]]


def failing(report: Report) -> list[Record]:
    """All cases that do not conform, those to look at first in front."""
    order = list(Verdict)
    found = [record for record in report.cases if not record.conforms]
    return sorted(found, key=lambda record: (-order.index(record.verdict), -_size(record)))


def _size(record: Record) -> float:
    difference = record.difference
    if difference is None:
        return 0.0
    return float("inf") if difference.worst_ulp is None else float(difference.worst_ulp)
