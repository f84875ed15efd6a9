"""A campaign as text: operations by operators, who kills, the score, and what survives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.mutation.report import Campaign, Row
from mlx_assay.conformance.mutation.ruling import EQUIVALENT, KILLED, SURVIVED

WIDTH = 64
"""Characters of a case id that the table shows."""


def rendered(report: Campaign) -> Iterator[str]:
    """The lines, without colour."""
    yield from _table(report)
    yield from _survivors(report)
    yield from _closing(report)


def first_killer(rows: list[Row]) -> str:
    """Who kills the most of these, a case by its path; cases before the checker and the compiler."""
    by = Counter(_short(row.killed_by) for row in rows if row.outcome == KILLED)
    return min(by, key=lambda name: (-by[name], name), default="")


def _short(killed_by: str) -> str:
    kind, separator, rest = killed_by.partition(": ")
    if separator and kind in ("checker", "compilation"):
        return f"checker {rest.split(']')[0]}]" if rest.startswith("[") else kind
    return killed_by.partition("?")[0]


def grouped(report: Campaign) -> list[tuple[tuple[str, str], list[Row]]]:
    """The mutants of each operation and operator, operations in alphabetical order."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in report.mutants:
        groups.setdefault((row.operation, row.operator), []).append(row)
    return sorted(groups.items(), key=lambda item: item[0][0])


def _table(report: Campaign) -> Iterator[str]:
    groups = grouped(report)
    if not groups:
        return
    width = max((len(operator) for (_, operator), _ in groups), default=8)
    yield f"{'':{width}}  mutants killed equivalent survived  killed most by"
    last = ""
    for (operation, operator), rows in groups:
        if operation != last:
            yield operation
            last = operation
        outcomes = Counter(row.outcome for row in rows)
        counts = f"{len(rows):7} {outcomes[KILLED]:6} {outcomes[EQUIVALENT]:10} {outcomes[SURVIVED]:8}"
        yield f"{operator:{width}}  {counts}  {first_killer(rows)[:WIDTH]}".rstrip()


def _survivors(report: Campaign) -> Iterator[str]:
    for row in report.mutants:
        if row.outcome == SURVIVED:
            yield ""
            yield f"survived: {row.id} at {row.place}"
            for line in report.diffs.get(row.id, "").splitlines():
                if not line.startswith(("---", "+++")):
                    yield f"  {line}"


def _closing(report: Campaign) -> Iterator[str]:
    totals = report.totals
    killed = totals["case"] + totals["test"] + totals["checker"] + totals["compilation"]
    if report.mutants:
        yield ""
    yield (
        f"{counted(len(report.mutants), 'mutant')}: {killed} killed "
        f"({totals['case']} by a case, {totals['test']} by a test, {totals['checker']} by the checker, "
        f"{totals['compilation']} by compilation), {totals[EQUIVALENT]} equivalent, {totals[SURVIVED]} survived"
    )
    if not report.complete:
        missing = report.selected - len(report.mutants)
        yield f"incomplete: {counted(missing, 'mutant')} {'was' if missing == 1 else 'were'} not judged"
    if report.unlaunched:
        yield f"no kernel was seen of {', '.join(report.unlaunched)}: the score says nothing of them"
    told = "none: nothing that can be killed" if report.score is None else f"{report.score:.4f}"
    yield f"score {told}, in {report.seconds:.0f} s"
