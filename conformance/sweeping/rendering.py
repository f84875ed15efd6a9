"""A campaign in a few lines of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.sweeping.account import SweepRecord
from mlx_assay.conformance.sweeping.progress import differing
from mlx_assay.conformance.sweeping.report import Campaign
from mlx_assay.conformance.sweeping.sweep import Sweep

SHOWN = 4
"""Places of a sweep that are shown; the report has more."""


def listed(sweeps: Sequence[Sweep]) -> list[str]:
    """What there is: inputs, chunks, id."""
    rows = [(f"{sweep.inputs:,}", f"{sweep.chunks:,}", sweep.id) for sweep in sweeps]
    inputs, chunks = (max(len(row[column]) for row in rows) for column in (0, 1))
    return [
        f"{row[0]:>{inputs}} inputs  {row[1]:>{chunks}} {'chunk ' if row[1] == '1' else 'chunks'}  {row[2]}"
        for row in rows
    ]


def closing(report: Campaign, path: Path) -> list[str]:
    """A line a sweep, the first places that differ, and the verdict."""
    lines = [line for record in report.sweeps for line in _record(record)]
    judging = sorted({name for record in report.sweeps for name in record.oracles})
    lines.append(f"oracles: {', '.join(judging) or 'none'}")
    without = sorted({name for record in report.sweeps for name in record.without})
    if without:
        lines.append(f"not asked of what the sieve lets through: {', '.join(without)} (--every-oracle asks them)")
    missing = sorted({name for record in report.sweeps for name in record.missing})
    lines += [f"missing oracle: {name}" for name in missing]
    if report.not_asked:
        lines.append(f"not asked (the implementation lacks them): {', '.join(report.not_asked)}")
    if report.altered:
        lines.append(f"changed meanwhile: {', '.join(report.altered[:SHOWN])}")
    lines.append(f"journal: {report.journal}; report: {path}")
    totals = report.totals
    part = "" if totals.whole else ", a part of what the sweeps have"
    lines.append(
        f"{report.verdict}: {totals.judged:,} of {totals.asked:,} inputs judged{part}, "
        f"{differing(totals.differing)}, in {report.seconds:.1f} s"
    )
    return [printable(line) for line in lines]


def _record(record: SweepRecord) -> list[str]:
    missing = record.chunks - record.chunks_judged
    lines = [
        f"{record.verdict.value:<16} {record.id}: {record.judged:,} of {record.asked:,} inputs"
        + (f", {differing(record.differing)}" if record.differing else "")
        + (f", {counted(missing, 'chunk')} missing" if missing else "")
    ]
    for spot in record.places[:SHOWN]:
        lines.append(f"    {spot.input or f'block {spot.block}, {spot.index}'}: got {spot.got} want {spot.want}")
    lines += [f"    {line}" for line in record.message.splitlines()]
    return lines + [f"    lost: {line}" for line in record.lost[:SHOWN]]
