"""A check as a compiler prints it: place, message, kind; the line with what is meant underlined; notes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from mlx_assay.conformance.checking.report import Access, CheckReport, Diagnostic, Kernel, Location, Sensitivity
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.quotation import printable
from mlx_assay.impl.executors.checker.finding import Severity

MOST_SHOWN = 20
"""Findings of one kernel that are shown."""

NARROWEST = 40
CUT = "..."
INDENT = "    "
STYLES = {"error": "bold red", "warning": "bold magenta", "note": "bold cyan", "incomplete": "bold yellow"}
"""The colours of clang."""


def console(file: TextIO) -> Console:
    """Colours where `file` is a terminal; NO_COLOR, FORCE_COLOR and TERM are honoured."""
    return Console(file=file, highlight=False, markup=False, emoji=False, soft_wrap=True)


def show(report: CheckReport, screen: Console) -> None:
    """Prints the whole check."""
    for line in rendered(report, screen.width):
        for part in _folded(line, screen) if screen.is_terminal else (line,):
            screen.print(part, soft_wrap=True)


def _folded(line: Text, screen: Console) -> Iterator[Text]:
    """A line in as many as a terminal needs, the further ones indented; in a log it stays whole, to be searched."""
    first, *further = line.wrap(screen, screen.width) if line.cell_len > screen.width else [line]
    yield first
    if further:
        rest = Text(" ").join(further)
        yield from (Text(INDENT) + part for part in rest.wrap(screen, screen.width - len(INDENT)))


def rendered(report: CheckReport, width: int = 80) -> Iterator[Text]:
    """The lines of a check, for a screen of so many columns."""
    kernels = sorted({finding.kernel: None for finding in report.findings})
    first = {kernel: min(_rank(f) for f in report.findings if f.kernel == kernel) for kernel in kernels}
    for kernel in sorted(kernels, key=lambda number: (first[number], number)):
        found = [finding for finding in report.findings if finding.kernel == kernel]
        for finding in found[:MOST_SHOWN]:
            yield from diagnostic(finding, report.kernels[kernel], width)
        if len(found) > MOST_SHOWN:
            yield Text(f"{len(found) - MOST_SHOWN} more findings in kernel {_name(report, kernel)}: see --json")
    for problem in report.problems:
        yield _headline(problem.location, "", "incomplete", problem.message, problem.what)
        yield from _snippet(problem.location, width)
    if report.asked.sensitivity:
        yield from sensitivities(report)
    yield from summary(report)


def _rank(finding: Diagnostic) -> int:
    return list(Severity).index(finding.severity)


def _name(report: CheckReport, kernel: int) -> str:
    return printable(report.kernels[kernel].name)


def diagnostic(finding: Diagnostic, about: Kernel, width: int = 80) -> Iterator[Text]:
    """One finding: the access that met it, the others, the barrier, and which kernel it is about."""
    place, kernel = finding.location, about.name
    yield _headline(place, kernel, finding.severity.value, finding.message, finding.kind)
    yield from _snippet(place, width)
    if finding.accesses and (who := _who(finding.accesses[0], finding, first=True)):
        yield _note(None, kernel, who)
    for access in finding.accesses[1:]:
        yield _note(access.location, kernel, _who(access, finding, first=False))
        yield from _snippet(access.location, width)
    if finding.barrier is not None:
        yield _note(finding.barrier, kernel, f"this barrier does not order {finding.space or 'this'} memory")
        yield from _snippet(finding.barrier, width)
    yield _note(finding.launch if finding.accesses else about.location, kernel, _circumstances(finding, kernel))


def _headline(place: Location | None, kernel: str, level: str, message: str, kind: str) -> Text:
    line = Text()
    line.append(_address(place, kernel), "bold")
    line.append(f"{level}: ", STYLES[level])
    line.append(f"{printable(message)} ", "bold")
    line.append(f"[{kind}]", STYLES[level])
    return line


def _note(place: Location | None, kernel: str, message: str) -> Text:
    line = Text()
    line.append(_address(place, kernel) if place else "  ", "bold")
    line.append("note: ", STYLES["note"])
    line.append(printable(message))
    return line


def _address(place: Location | None, kernel: str) -> str:
    """`script.py:42:5: `, or `<kernel NAME source>:7:3: ` where the text stands in no file."""
    if place is None:
        return f"<kernel {printable(kernel)}>: " if kernel else "mlx-assay: "
    if place.file:
        return f"{printable(place.file)}:{place.line}:{place.column}: "
    return f"<kernel {printable(kernel)} {printable(place.part)}>:{place.kernel_line}:{place.column}: "


def _snippet(place: Location | None, width: int) -> Iterator[Text]:
    """The line, and below it a caret and tildes; of a long line the part around them."""
    if place is None or not place.text.strip():
        return
    gutter = f"{place.line or place.kernel_line:5} | "
    room = max(width - len(gutter), NARROWEST)
    text = printable(place.text.replace("\n", " ").expandtabs(1))
    begin, end = place.column - 1, max(place.end_column - 1, place.column)
    cut = 0
    if len(text) > room:
        cut = max(0, min(begin - room // 4, len(text) - room))
        text = text[cut : cut + room]
        text = f"{CUT}{text[len(CUT) :]}" if cut else f"{text[: -len(CUT)]}{CUT}"
    yield Text(gutter + text)
    marks = Text(" " * (len(gutter) - 2) + "| " + " " * (begin - cut))
    marks.append("^" + "~" * (min(end - cut, len(text)) - (begin - cut) - 1), "bold green")
    yield marks


def _who(access: Access, finding: Diagnostic, first: bool) -> str:
    """`write of tile[3] by thread (1, 0, 0) of threadgroup (0, 0, 0)`."""
    by = f"thread {access.thread}" if access.thread is not None else ""
    if access.threadgroup is not None:
        by += f"{' of ' if by else ''}threadgroup {access.threadgroup}"
    if not any(word in access.how for word in ("read", "write")):
        return f"{by} {'waits' if access.how == 'waits' else 'is'} here" if by else ""
    said = f"{access.how}{_element(finding)}{f' by {by}' if by else ''}"
    return said if first else f"other access: {said}"


def _element(finding: Diagnostic) -> str:
    if not finding.array:
        return ""
    if finding.index is not None:
        return f" of {finding.array}[{finding.index}]"
    return f" of {finding.array}" + (f" at byte {finding.offset}" if finding.offset is not None else "")


def _circumstances(finding: Diagnostic, kernel: str) -> str:
    parts = [f"in kernel {kernel!r}"]
    if finding.array:
        parts.append(f"{finding.space} array {finding.array!r}".strip())
    if finding.schedule:
        parts.append(f"first under schedule {finding.schedule}")
    if finding.count > 1:
        parts.append(f"{finding.count} times")
    return ", ".join(parts)


def sensitivities(report: CheckReport) -> Iterator[Text]:
    """A table of what depends on what, a kernel after the other."""
    for kernel in report.kernels:
        if not kernel.checked:
            continue
        launches = f"{kernel.launches} launch{'es' if kernel.launches != 1 else ''}"
        yield Text(f"sensitivity of kernel {printable(kernel.name)} ({launches}):", "bold")
        yield from _table(kernel)
        if kernel.transcendentals:
            calls = ", ".join(map(printable, kernel.transcendentals))
            yield Text(f"  calls {calls}: the last bits are this machine's C library's")
        if kernel.accumulations:
            calls = ", ".join(map(printable, kernel.accumulations))
            yield Text(f"  calls {calls}: the order in which products are added is published nowhere")


def _table(kernel: Kernel) -> Iterator[Text]:
    rows = [_row(one) for one in kernel.sensitivity if one.differing]
    moving = {one.switch for one in kernel.sensitivity if one.differing}
    still = dict.fromkeys(one.switch for one in kernel.sensitivity if one.switch not in moving)
    if rows:
        head = ("output", "switch", "value", "elements that differ", "first")
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
        for row in (head, *rows):
            yield Text("  " + "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip())
    if still:
        yield Text(f"  depends in no bit on: {', '.join(still)}")


def _row(one: Sensitivity) -> tuple[str, ...]:
    first = f"[{one.index}] {one.default} -> {one.changed}"
    return printable(one.output), one.switch, one.value, f"{one.differing} of {one.elements}", first


def summary(report: CheckReport) -> Iterator[Text]:
    """Counts, what was left out, and the verdict in one word."""
    totals = report.totals
    if totals.ignored:
        yield Text(f"ignored: {counted(totals.ignored, 'finding')} of {', '.join(report.asked.ignored)}")
    if totals.dropped:
        yield Text(f"{totals.dropped} more findings were only counted")
    parts = [
        counted(count, word)
        for count, word in ((totals.errors, "error"), (totals.warnings, "warning"), (totals.notes, "note"))
        if count
    ]
    found = ", ".join(parts) or "no finding"
    run = (
        counted(totals.kernels, "kernel"),
        counted(totals.launches, "launch", "launches"),
        counted(len(report.asked.schedules), "schedule"),
    )
    where = ", ".join(run)
    style = {"clean": "bold green", "findings": "bold red", "incomplete": "bold yellow"}[report.verdict]
    line = Text()
    line.append(f"{report.verdict}: ", style)
    line.append(f"{found} in {where}, {report.seconds:.1f} s")
    yield line
