"""The report for people: a table on a terminal, a line a drift in a log, Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mlx_assay.conformance.versions.report import Drift, Explanation, VersionsReport

HEADS = ("operation", "door", "dtype", "releases", "inputs", "first input", "place", "old", "new", "rule")
NO_RULE = "none explains it"
_CELL_LIMIT = 120


def show(report: VersionsReport, console: Console) -> None:
    """Prints the report: a table where the console is a terminal, else lines."""
    if report.drifts and console.is_terminal:
        table = Table(*HEADS)
        for drift in report.drifts:
            table.add_row(*(Text(cell) for cell in cells(drift)), style=None if drift.explanations else "bold red")
        console.print(table)
    elif report.drifts:
        for drift in report.drifts:
            console.print(Text(line(drift)), soft_wrap=True)
    for told in notes(report):
        console.print(Text(told), soft_wrap=True)


def cells(drift: Drift) -> list[str]:
    """A drift as a row, in the order of HEADS."""
    example = drift.example
    return [
        drift.operation,
        drift.door,
        drift.dtype,
        f"{drift.old_release} to {drift.new_release}",
        f"{drift.inputs} of {drift.compared}",
        f"{_clean(f'{example.case} {example.label}'.strip())} {example.shape}",
        str(example.place) if example.place else "",
        _value(example.old_bits, example.old),
        _value(example.new_bits, example.new),
        reasons(drift),
    ]


def line(drift: Drift) -> str:
    """A drift in one line."""
    operation, door, dtype, releases, inputs, first, place, old, new, rule = cells(drift)
    where = f"{first} at {place}" if place else first
    return f"{operation} {dtype} by {door}, {releases}: {inputs} inputs, as {where}: {old}, then {new}; rule: {rule}"


def reasons(drift: Drift) -> str:
    """The rules that explain a drift, or that none does."""
    told = [f"{each.rule}{_releases(each)}" for each in drift.explanations]
    return f"{drift.explanations[0].contract} {', '.join(told)}" if told else NO_RULE


def _releases(explanation: Explanation) -> str:
    if explanation.since:
        return f" (from {explanation.since})"
    return f" (to {explanation.until})" if explanation.until else ""


def notes(report: VersionsReport) -> Iterator[str]:
    """What stands beside the drifts: what could not be asked, and the verdict."""
    for asked in report.asked:
        if not asked.answered:
            yield f"not asked: MLX {asked.release} by {asked.door}: {_clean(asked.reason, 600)}"
    for fault in report.faults:
        yield (
            f"not compared: {fault.operation} {fault.dtype} by {fault.door}, {fault.old_release} to "
            f"{fault.new_release}: {fault.inputs} inputs raise in both: {_clean(fault.message)}"
        )
    for door, operations in report.not_asked.items():
        yield f"not asked by {door}: {', '.join(operations)}"
    total = sum(count for counts in report.inputs.values() for count in counts.values())
    unexplained = [drift for drift in report.drifts if not drift.explanations]
    yield (
        f"{report.verdict}: MLX {', '.join(report.releases)}; {total} inputs of {len(report.inputs)} operations, "
        f"{len(report.drifts)} drifts, {len(unexplained)} without a rule, in {report.seconds:.0f} s"
    )


def markdown(report: VersionsReport) -> str:
    """The report as a Markdown document."""
    lines = [f"# MLX {', '.join(report.releases)}: what drifted", ""]
    if report.drifts:
        lines += [_row(HEADS), _row("---" for _ in HEADS)]
        lines += [_row(cells(drift)) for drift in report.drifts]
        lines.append("")
        known = {(each.contract, each.rule): each for drift in report.drifts for each in drift.explanations}
        for (contract, rule), each in sorted(known.items()):
            lines.append(f"- {contract} {rule}{_releases(each)}: {each.text} [{each.source}]")
        lines += [""] if known else []
    lines += [f"- {_escaped(told)}" for told in notes(report)]
    return "\n".join(lines) + "\n"


def _row(values: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(value if value == '---' else _escaped(value) for value in values)} |"


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in r"\`*_|<>[]" else letter for letter in text)


def _value(bits: str, value: str) -> str:
    return f"{bits} ({_clean(value)})" if bits else _clean(value)


def _clean(text: str, limit: int = _CELL_LIMIT) -> str:
    """One line without control characters, whoever wrote it."""
    flat = "".join(letter if letter.isprintable() else " " for letter in text)
    return flat if len(flat) <= limit else f"{flat[: limit - 3]}..."
