"""The text: a report for a terminal, or for a log without colours."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.quotation import MARK
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.characters import PLAIN, chart, histogram, legend, places
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.rendering.folding import folded, room
from mlx_assay.conformance.rendering.overview import Overview
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verdict import Verdict

IN_FULL = 10
"""Failing cases that are told in full."""
NAMED = 50
"""Further ones of which a line is shown."""
INDENT = "    "
STYLES = {"conforms": "bold green", "differs": "bold red", "incomplete": "bold yellow"}


def text(report: Report) -> str:
    """The whole text, without colours."""
    file = io.StringIO()
    show(report, Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=True, width=160))
    return file.getvalue()


def show(report: Report, console: Console) -> None:
    """Prints the report, folded where a terminal needs it; colours where the console has them."""
    width = room(console)
    for line in marked(lines(Overview.of(report))):
        for part in folded(line, console, width):
            console.print(part, soft_wrap=True, markup=False, highlight=False, emoji=False)


def marked(found: Iterable[Text]) -> Iterator[Text]:
    """Each line by itself; behind a mark what a text of the report holds beyond its first."""
    for one in found:
        first, *rest = one.split("\n", allow_blank=True)
        yield first
        yield from (Text(f"{INDENT}{MARK}").append_text(line) for line in rest)


def lines(overview: Overview) -> Iterator[Text]:
    """What is to be seen, the verdict last, so that a terminal ends with it."""
    report = overview.report
    for name, value in overview.facts:
        yield Text(f"{name:>16}  {value}")
    yield Text()
    yield from _table(overview)
    if overview.common:
        yield Text()
        yield Text(f"differences: {', '.join(f'{count} {kind}' for kind, count in overview.common[:NAMED])}")
    for record in overview.varied[:IN_FULL]:
        yield Text()
        yield from case(record, report)
    further = overview.varied[IN_FULL:]
    if further:
        yield Text()
        yield Text("also:", "bold")
    for record in further[:NAMED]:
        yield _style(f"  {record.verdict.value}  {record.id}", record.verdict)
    if len(further) > NAMED:
        yield Text(f"  and {len(further) - NAMED:,} more: --html shows them")
    yield Text()
    for judge in overview.judges:
        reason = f" ({judge.reason})" if judge.reason else ""
        yield Text(f"oracle {judge.name} {judge.version}: {judge.state}, {counted(judge.cases, 'case')}{reason}")
    for note in overview.notes:
        yield Text(note)
    for alarm in overview.alarms:
        yield Text(alarm, "bold yellow")
    verdict = Text(report.verdict, STYLES[report.verdict])
    yield verdict.append(f": {overview.sentence}", "default")


def _table(overview: Overview) -> Iterator[Text]:
    heads = ["operation", "dtype", *(verdict.value for verdict in overview.verdicts), "conforms"]
    rows = [
        [row.operation, row.dtype, *(str(row.counts[one] or "-") for one in overview.verdicts), _yes(row.failing)]
        for row in overview.rows[: IN_FULL * NAMED]
    ]
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    for number, row in enumerate([heads, *rows]):
        cells = (
            f"{cell:<{width}}" if place < 2 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        style = "bold" if not number else "red" if row[-1] == "no" else ""
        yield Text("  ".join(cells).rstrip(), style, no_wrap=True)


def _yes(failing: int) -> str:
    return "no" if failing else "yes"


def case(record: Record, report: Report) -> Iterator[Text]:
    """One case: what it hunts, how it differs, where and by how much, and the command that runs it again."""
    told = Explanation.of(record, report.contracts, PLAIN)
    difference = record.difference
    yield _style(f"{record.verdict.value}: {record.id}", record.verdict)
    yield from _indented(told.headline)
    yield from _indented(f"why: {record.why}")
    for number, rule in told.rules:
        yield from _indented(f"rule {number}: {rule}")
    for diagnosis in told.diagnoses:
        yield Text(f"{INDENT}pattern ({diagnosis.kind}): {diagnosis.text}", "bold")
    if difference is not None:
        needed = f", needed {difference.policy}" if difference.policy else ""
        first = f", the first of {record.subcases} that does so" if record.subcases > 1 else ""
        where = f"subcase {difference.subcase}{first}, oracle {difference.oracle or 'none'}{needed}"
        yield from _indented(f"{told.size}; {where}")
    yield from _block("", places(told.places))
    if told.columns:
        yield from _picture("got less want, in ULP:", histogram(told.columns))
    if told.grid:
        yield from _picture(f"where; {legend(told.grid)}:", chart(told.grid))
    yield from _block("", map(_behind_mark, told.trace.split("\n")) if told.trace else [])
    yield from _block("it printed:", map(_behind_mark, record.output.split("\n")[-20:]) if record.output else [])
    yield Text(f"{INDENT}{record.replay}", "cyan", no_wrap=True)


def _indented(text: str) -> Iterator[Text]:
    yield Text(f"{INDENT}{text}")


def _behind_mark(line: str) -> str:
    return f"| {line.strip().removeprefix('| ') if line.startswith(MARK) else line}"


def _block(title: str, rows: Iterable[str]) -> Iterator[Text]:
    rows = list(rows)
    if rows and title:
        yield Text(f"{INDENT}{title}")
    yield from (Text(f"{INDENT}  {row}") for row in rows)


def _picture(title: str, rows: Iterable[str]) -> Iterator[Text]:
    """Rows of which each stands beneath the other, and is cut rather than broken."""
    yield Text(f"{INDENT}{title}")
    yield from (Text(f"{INDENT}  {row}", no_wrap=True, overflow="crop") for row in rows)


def _style(text: str, verdict: Verdict) -> Text:
    return Text(text, "bold red" if verdict is Verdict.DIFFERS else "bold yellow", no_wrap=True)
