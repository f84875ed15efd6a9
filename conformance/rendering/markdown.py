"""Markdown: a report for the summary of a step on GitHub, or for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.characters import PLAIN, chart, histogram, legend, places
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.rendering.overview import Overview
from mlx_assay.conformance.rendering.prose import code, prose
from mlx_assay.conformance.reporting.report import Report

LARGEST = 2**20
"""Bytes that GitHub takes of a step's summary; more of it, and nothing is shown."""
IN_FULL = 20
NAMED = 300
"""Failing cases that are told in full, and further ones that are named."""
MOST_ROWS = 200
RESERVE = 400
"""Bytes for the sentence that says what was left out."""
MARKS = {"conforms": "✅", "differs": "❌", "incomplete": "⚠️"}


def markdown(report: Report, room: int = LARGEST) -> str:
    """The document, of `room` bytes at most in UTF-8: what does not fit is counted in its last sentence."""
    overview = Overview.of(report)
    left = room - RESERVE
    parts: list[str] = []
    for part in _head(overview):
        left -= len(part.encode())
        if left < 0:
            return "".join(parts) + "\nThe rest is left out, to stay within the size of a summary.\n"
        parts.append(part)
    shown = 0
    for part in _cases(overview):
        left -= len(part.encode())
        if left < 0:
            break
        parts.append(part)
        shown += 1
    if shown < len(overview.failing):
        parts.append(f"\n{len(overview.failing) - shown:,} more cases that do not conform are left out here.\n")
    return "".join(parts)


def _head(overview: Overview) -> Iterator[str]:
    report = overview.report
    yield f"# {MARKS[report.verdict]} {report.verdict}\n\n{code(overview.subject)}. {overview.sentence}\n\n"
    if overview.alarms:
        yield "> [!WARNING]\n" + "".join(f"> {prose(alarm)}\n>\n" for alarm in overview.alarms) + "\n"
    yield "".join(f"{prose(note)}\n\n" for note in overview.notes)
    heads = ["operation", "dtype", *(verdict.value for verdict in overview.verdicts), "conforms"]
    yield _row(heads) + _row(["---", "---", *("---:" for _ in overview.verdicts), "---"])
    for row in overview.rows[:MOST_ROWS]:
        counts = [f"{row.counts[verdict]:,}" if row.counts[verdict] else "" for verdict in overview.verdicts]
        yield _row([code(row.operation), code(row.dtype), *counts, "❌ no" if row.failing else "✅ yes"])
    if len(overview.rows) > MOST_ROWS:
        yield f"\n{len(overview.rows) - MOST_ROWS:,} more operations and dtypes stand in the report.\n"
    if overview.common:
        kinds = ", ".join(f"{count:,} {code(kind)}" for kind, count in overview.common[:50])
        yield f"\nWhat the differences have in common: {kinds}\n"
    yield "\n" + " · ".join(f"{name} {code(value)}" for name, value in overview.facts) + "\n"
    yield "\n" + " · ".join(f"oracle {code(f'{one.name} {one.version}')} {one.state}" for one in overview.judges[:50])
    yield "\n"


def _cases(overview: Overview) -> Iterator[str]:
    for number, record in enumerate(overview.varied[: IN_FULL + NAMED]):
        if number < IN_FULL:
            title = "\n## Cases that do not conform\n" if number == 0 else ""
            yield title + _case(record, overview.report)
        else:
            title = "\n### Also\n\n" if number == IN_FULL else ""
            yield f"{title}- {record.verdict.value} {code(record.id)}\n"


def _case(record: Record, report: Report) -> str:
    told = Explanation.of(record, report.contracts, PLAIN)
    parts = [f"\n### {record.verdict.value}: {code(record.id)}\n\n{prose(record.why)}\n"]
    parts += [f"\nRule {prose(number)}: {prose(rule)}\n" for number, rule in told.rules]
    if told.diagnoses:
        parts.append("\n" + "".join(f"- **{prose(one.text)}** ({prose(one.kind)})\n" for one in told.diagnoses))
    if told.size:
        parts.append(f"\n{prose(told.size)}.\n")
    parts.append("\n" + fenced(told.headline) + "\n" + fenced(record.replay, "sh"))
    blocks = [("First differences", places(told.places))]
    blocks.append(("Distances, got less want, in ULP", histogram(told.columns)))
    if told.grid:
        blocks.append((f"Where; {legend(told.grid)}", chart(told.grid)))
    blocks += [("What it raised or printed", told.trace.split("\n") if told.trace else [])]
    blocks += [("Output", record.output.split("\n") if record.output else [])]
    parts += [
        f"\n<details><summary>{prose(title)}</summary>\n\n{fenced(chr(10).join(rows))}\n</details>\n"
        for title, rows in blocks
        if rows
    ]
    return "".join(parts)


def fenced(text: str, language: str = "text") -> str:
    """A block that shows a text as it is: its fence is longer than any run of backticks within."""
    longest = max((len(run) for run in "".join(sign if sign == "`" else " " for sign in text).split()), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
