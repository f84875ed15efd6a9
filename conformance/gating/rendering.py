"""A decision as a person reads it: on a terminal or in a log, and as Markdown for a step summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mlx_assay.conformance.gating.decision import Decision, GroupRow
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.rendering.prose import link, prose
from mlx_assay.conformance.verdict import Verdict

LEGS = ("leg", "kind", "device class", "executor", "cases", "failing", "waived", "smoke", "verdict")
GROUPS = ("leg", "operation", "dtype", "cases", "failing", "waived", "smoke", "verdicts")
LARGEST = 900_000
"""Bytes of Markdown: GitHub refuses a step summary of more than 1 MiB."""


def legs(decision: Decision) -> list[tuple[str, ...]]:
    """A row a leg, in the columns of LEGS."""
    return [
        (
            row.leg,
            "bits" if row.bits else "smoke",
            row.device_class,
            row.executor,
            *(str(count) for count in (row.cases, row.failing, row.waived, row.warned)),
            row.verdict,
        )
        for row in decision.legs
    ]


def groups(decision: Decision) -> list[tuple[str, ...]]:
    """A row an operation and dtype in a leg, in the columns of GROUPS; failing ones first."""
    rows = sorted(decision.operations, key=lambda row: not row.failing)
    return [
        (
            row.leg,
            row.operation,
            row.dtype,
            *(str(count) for count in (row.cases, row.failing, row.waived, row.warned)),
            _verdicts(row),
        )
        for row in rows
    ]


def _verdicts(row: GroupRow) -> str:
    return ", ".join(f"{row.verdicts[one]} {one}" for one in Verdict if one in row.verdicts)


def closing(decision: Decision) -> str:
    """The verdict in one word, and what it is of."""
    cases = sum(row.cases for row in decision.legs)
    count = len(decision.reasons)
    told = f", reasons: {count}" if count else ""
    return f"{decision.verdict}: reports: {len(decision.reports)}, cases: {cases}{told}"


def show(decision: Decision, console: Console) -> None:
    """Tables, waivers, reasons, and the verdict last."""
    for columns, rows in ((LEGS, legs(decision)), (GROUPS, groups(decision))):
        if rows:
            _table(columns, rows, console)
    waivers = [" ".join(told) for told in _waivers(decision)]
    for line in (*waivers, *map(str, decision.reasons), closing(decision)):
        console.print(Text(printable(line)), soft_wrap=True)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for name in columns:
        right = name in ("cases", "failing", "waived", "smoke")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    with console.capture() as made:
        console.print(table)
    console.file.write("".join(f"{line.rstrip()}\n" for line in made.get().splitlines()) + "\n")


def _waivers(decision: Decision) -> list[tuple[str, str]]:
    """What each waiver says and where it is told; those with which something is wrong are among the reasons."""
    return [
        (
            f"waiver {waiver.state}: {waiver.query}{f' in {waiver.leg}' if waiver.leg else ''}, cases: {waiver.cases}, "
            f"{waiver.expect} until {waiver.until.isoformat()}: {waiver.reason}",
            waiver.issue,
        )
        for waiver in decision.waivers
        if waiver.state in ("holds", "not judged")
    ]


def markdown(decision: Decision) -> str:
    """The decision for a step summary; reasons are cut before its limit, the tables are not."""
    text = "".join(f"{line}\n" for line in _markdown(decision))
    if len(text.encode()) <= LARGEST:
        return text
    return text.encode()[:LARGEST].decode(errors="ignore") + "\n\nCut here: the rest stands in the JSON document.\n"


def _markdown(decision: Decision) -> Iterator[str]:
    yield f"## mlx-assay gate: {decision.verdict}"
    yield ""
    yield prose(closing(decision))
    yield ""
    yield from _rows(LEGS, legs(decision))
    if decision.reasons:
        yield "### Reasons"
        yield ""
        for reason in decision.reasons:
            yield f"- **{prose(reason.where)}**: {prose(reason.text)}. {prose(reason.mend)}"
        yield ""
    if waivers := _waivers(decision):
        yield "### Waivers"
        yield ""
        yield from (f"- {prose(text)} {link(issue)}" for text, issue in waivers)
        yield ""
    yield from _rows(GROUPS, groups(decision))


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(map(prose, row))} |" for row in rows)
    yield ""
