"""The difference for people: lines on a terminal or in a log, and Markdown for a page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from mlx_assay.conformance.differing.document import KINDS, Change, Difference, Kind, Setting, Side
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.rendering.prose import prose

HEADS: dict[Kind, str] = {
    "newly-failing": "newly failing",
    "still-failing": "still failing, otherwise",
    "gone": "gone",
    "newly-passing": "newly passing",
    "other-rung": "conforming on another rung",
    "new": "new and conforming",
}
STYLES: dict[Kind, str] = {
    "newly-failing": "bold red",
    "still-failing": "red",
    "gone": "yellow",
    "newly-passing": "green",
}
SHOWN = 25
"""Cases of one kind that a text shows, and as many fields; the JSON document has all."""

ON_PAGE = 200
"""Cases of one kind in Markdown: a step summary of GitHub holds 1 MiB."""

_LIMIT = 300


def show(difference: Difference, console: Console) -> None:
    """Prints the difference, one thing a line."""
    for line, style in lines(difference):
        console.print(Text(line, style=style), soft_wrap=True)


def lines(difference: Difference) -> Iterator[tuple[str, str]]:
    """Each line with its style."""
    for which, side in (("old", difference.old), ("new", difference.new)):
        yield f"{which}: {_side(side)}", ""
    for setting in difference.settings[:SHOWN]:
        yield f"  {_setting(setting)}", ""
    if (more := len(difference.settings) - SHOWN) > 0:
        yield f"  and {more} more fields: see --json", ""
    for kind in KINDS:
        changes = [change for change in difference.changes if change.kind == kind]
        if changes:
            yield f"{HEADS[kind]}: {len(changes)}", STYLES.get(kind, "")
        for change in changes[:SHOWN]:
            yield from ((f"  {line}", "") for line in _told(change))
        if len(changes) > SHOWN:
            yield f"  and {len(changes) - SHOWN} more: see --json", ""
    for note in difference.notes:
        yield f"not looked at: {_flat(note)}", "yellow"
    yield closing(difference), "bold"


def closing(difference: Difference) -> str:
    """The verdict, and the counts that it rests on."""
    counts = [f"{count} {HEADS[kind]}" for kind, count in difference.counts.items() if count]
    same = f" ({difference.same_bits} with the same bits)" if difference.same_bits else ""
    unchanged = (f"{difference.conforming} conform as before", f"{difference.failing} fail as before{same}")
    told = ", ".join([*counts, *unchanged])
    because = f" ({'; '.join(difference.reasons)})" if difference.reasons else ""
    return f"{difference.verdict}{because}: {told}"


def _side(side: Side) -> str:
    where = ", ".join(filter(None, (side.leg and f"leg {side.leg}", side.device_class, side.executor)))
    return _flat(
        f"{side.path}: {side.verdict}, {side.failing} of {side.cases} cases failing; {side.implementation}"
        f" on {where or 'an unknown device'}, {side.started}"
    )


def _setting(setting: Setting) -> str:
    old, new = ("none" if value is None else value or "''" for value in (setting.old, setting.new))
    return _flat(f"{setting.field}: {old} -> {new}")


def _told(change: Change) -> Iterator[str]:
    yield f"{_flat(change.id)}: {_verdicts(change)}"
    if change.kind == "still-failing":
        yield f"  {_parts(change)}"
        if change.old and change.old.message and {"bits", "verdict", "message"} & set(change.parts):
            yield f"  old: {_flat(change.old.message.partition(chr(10))[0])}"
    if change.new and change.new.message and not change.new.conforms:
        yield f"  {'new: ' if change.kind == 'still-failing' else ''}{_flat(change.new.message.partition(chr(10))[0])}"
    if change.new and not change.new.conforms:
        if change.new.diagnoses:
            yield f"  {_flat(change.new.diagnoses[0])}"
        if change.new.replay:
            yield f"  {_flat(change.new.replay)}"


def _verdicts(change: Change) -> str:
    old, new = (side.verdict.value if side else "not there" for side in (change.old, change.new))
    return old if old == new else f"{old} -> {new}"


def _parts(change: Change) -> str:
    bits = {
        "same": "the same bits came",
        "other": "other bits came",
        "alike": "no place that the reports show has other bits",
        "unknown": "",
    }[change.bits]
    other = [f"other {part}" for part in change.parts if part not in ("bits", "verdict")]
    return ", ".join(filter(None, (bits, *other))) or "another verdict"


def markdown(difference: Difference) -> str:
    """The difference as a Markdown document."""
    made = [f"# {prose(closing(difference))}", ""]
    made += [f"- {which}: {prose(_side(side))}" for which, side in (("old", difference.old), ("new", difference.new))]
    made.append("")
    for kind in KINDS:
        changes = [change for change in difference.changes if change.kind == kind]
        if not changes:
            continue
        made += [
            f"## {HEADS[kind].capitalize()}: {len(changes)}",
            "",
            "| case | verdict | what came |",
            "|---|---|---|",
        ]
        made += [_row(change) for change in changes[:ON_PAGE]]
        if len(changes) > ON_PAGE:
            made += ["", f"And {len(changes) - ON_PAGE} more."]
        made.append("")
    if difference.settings:
        made += ["## Settings", "", "| field | old | new |", "|---|---|---|"]
        for setting in difference.settings[:ON_PAGE]:
            cells = (setting.field, *("" if each is None else each for each in (setting.old, setting.new)))
            made.append(f"| {' | '.join(prose(_flat(cell)) for cell in cells)} |")
        made.append("")
    made += [f"- not looked at: {prose(_flat(note))}" for note in difference.notes]
    return "\n".join(made).rstrip() + "\n"


def _row(change: Change) -> str:
    parts = [_parts(change)] if change.kind == "still-failing" else []
    if change.new and not change.new.conforms:
        parts += [change.new.message.partition("\n")[0], *change.new.diagnoses[:1]]
    cells = (_flat(change.id), _verdicts(change), _flat("; ".join(filter(None, parts))))
    return f"| {' | '.join(map(prose, cells))} |"


def _flat(text: str) -> str:
    """One line that steers no terminal, cut."""
    line = printable(text)
    return line if len(line) <= _LIMIT else f"{line[: _LIMIT - 3]}..."
