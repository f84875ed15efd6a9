"""The page: a report as one HTML file that needs no script, no network and no other file."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.drawing import bars, cells
from mlx_assay.conformance.rendering.encoding import runs
from mlx_assay.conformance.rendering.explanation import Explanation
from mlx_assay.conformance.rendering.figure import COARSE, FINE
from mlx_assay.conformance.rendering.overview import Overview, details, kind
from mlx_assay.conformance.reporting.report import ContractRecord, Report
from mlx_assay.conformance.verdict import Verdict

LARGEST = 2_000_000
"""Bytes of the whole page; a case that would take more is shown in brief, then only counted."""
ROOM_FOR_CASES = 1_400_000
ROOM_FOR_BRIEFS = 120_000
ROOM_FOR_PASSING = 300_000
ROOM_FOR_CONTRACTS = 60_000
TAGS = 120
"""Bytes of the elements around a group of passing cases."""
SCALES = (1, 0.6, 0.3, 0)
"""Shares of all room and of all numbers of rows that are tried until the page is small enough."""
DETAILS = (FINE, COARSE)
OPEN = 3
"""Failing cases whose part is open at first."""
IN_FULL = 10
"""Failing cases that are shown with all detail, however many there are."""
MOST_CHOICES = 24
MOST_ROWS = 400
MOST_JUDGES = 100
MOST_DETAILS = 100
NO_PATTERN = "none"
SAFE = "/?&=:@!$()*+,;~.-_"
"""Characters that a fragment may hold as they are (RFC 3986)."""
LONGEST_FRAGMENT = 1000
LEAST_SHARE = 4000
"""Bytes for a case below which full detail is not tried."""
GLYPHS = {
    Verdict.SAME_BITS: "=",
    Verdict.SAME_VALUE: "≈",
    Verdict.WITHIN_ULP: "≈",
    Verdict.WITHIN_BOUND: "≈",
    Verdict.DIFFERS: "≠",
    Verdict.ORACLES_DISAGREE: "?",
    Verdict.UNSUPPORTED: "–",
    Verdict.ERROR: "!",
    Verdict.CRASHED: "×",
    Verdict.TIMED_OUT: "…",
    Verdict.NOT_RUN: "–",
}


@dataclass(frozen=True)
class Choice:
    """A filter: the class of the cases it shows, what it is called, and how many they are."""

    name: str
    label: str
    count: int


@dataclass(frozen=True)
class Filter:
    """Filters of one kind, of which any can be switched off."""

    title: str
    choices: list[Choice]


def page(report: Report) -> str:
    """The whole page, of LARGEST bytes at most in UTF-8: the less room there is, the more is only counted."""
    overview, environment = Overview.of(report), _environment()
    for scale in SCALES:
        made = _page(overview, environment, scale)
        if len(made.encode()) <= LARGEST:
            break
    return made


def _page(overview: Overview, environment: Environment, scale: float) -> str:
    filters = _filters(overview.failing) if scale else []
    style = _style(filters)
    cases = list(_cases(environment, overview, filters, scale))
    passing = list(_passing(overview, int(ROOM_FOR_PASSING * scale)))
    return environment.get_template("page.html.jinja").render(
        overview=overview,
        report=overview.report,
        details=details(overview.report)[: int(MOST_DETAILS * scale)],
        rows=overview.rows[: int(MOST_ROWS * scale)],
        judges=overview.judges[: int(MOST_JUDGES * scale)],
        contracts=list(_contracts(overview, int(ROOM_FOR_CONTRACTS * scale))),
        filters=filters,
        cases=cases,
        left=len(overview.failing) - len(cases),
        passing=passing,
        passed=sum(map(len, overview.passing.values())),
        style=Markup(style),
        digest=b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        classes=verdict_class,
    )


def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_template),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["fragment"] = fragment
    made.globals.update(runs=runs, bars=bars, cells=cells)
    made.filters["thousands"] = lambda number: f"{number:,}"
    return made


def _template(name: str) -> str:
    return files("mlx_assay.conformance.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def verdict_class(verdict: Verdict, conforms: bool = True) -> str:
    """Which colour a verdict has; the ladder's middle is green only where the case conforms."""
    if verdict is Verdict.DIFFERS:
        return "bad"
    if verdict.on_ladder:
        return "good" if conforms else "bad"
    return "open" if verdict in (Verdict.NOT_RUN, Verdict.ORACLES_DISAGREE) else "worse"


def _cases(environment: Environment, overview: Overview, filters: list[Filter], scale: float) -> Iterator[Markup]:
    """Parts of the page: in full, with less detail where they would take more than their share, as lines, or not."""
    whole, brief = environment.get_template("case.html.jinja"), environment.get_template("brief.html.jinja")
    names = {(one.title, choice.label): choice.name for one in filters for choice in one.choices}
    room, rest, left = int(ROOM_FOR_CASES * scale), int(ROOM_FOR_BRIEFS * scale), len(overview.failing)
    for number, (record, anchor) in enumerate(zip(overview.failing, _anchors(overview.failing), strict=True)):
        shown = {
            "record": record,
            "anchor": anchor,
            "classes": " ".join(names.get(key, "") for key in _keys(record)).strip(),
            "colour": verdict_class(record.verdict, record.conforms),
            "glyph": GLYPHS[record.verdict],
            "open": number < OPEN,
        }
        share = room // left
        left -= 1
        full = number < IN_FULL or share >= LEAST_SHARE
        for detail in DETAILS[0 if full else 1 :] if room > 0 else ():
            part = _part(whole, shown, Explanation.of(record, overview.report.contracts, detail))
            size = len(part.encode())
            if size <= (share if number >= IN_FULL and detail is not DETAILS[-1] else room):
                room -= size
                yield part
                break
        else:
            part = _part(brief, shown)
            if (rest := rest - len(part.encode())) <= 0:
                return
            yield part


def _part(template: Template, shown: dict[str, object], explanation: Explanation | None = None) -> Markup:
    return Markup(template.render(shown, explanation=explanation))


def _keys(record: Record) -> tuple[tuple[str, str], ...]:
    named = ("Verdict", record.verdict.value), ("Operation", record.operation), ("Dtype", record.dtype)
    return (*named, ("Pattern", kind(record) or NO_PATTERN))


def _anchors(records: Iterable[Record]) -> Iterator[str]:
    """An id a case, the case's own as a fragment of an address holds it; a second one of the same gets a number."""
    seen: dict[str, int] = {}
    for record in records:
        name = fragment(record.id)
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}~{seen[name]}"


def fragment(text: str) -> str:
    """A text as the part of an address behind the `#`, which is the id of an element too; a digest of a long one."""
    name = quote(text, safe=SAFE)
    return name if len(name) <= LONGEST_FRAGMENT else hashlib.sha256(text.encode()).hexdigest()


def _filters(records: list[Record]) -> list[Filter]:
    """What the failing cases can be told apart by; a kind with one choice alone is left out."""
    counts: dict[str, dict[str, int]] = {}
    for record in records:
        for title, label in _keys(record):
            of_kind = counts.setdefault(title, {})
            of_kind[label] = of_kind.get(label, 0) + 1
    made = []
    for title, of_kind in counts.items():
        labels = sorted(of_kind)[:MOST_CHOICES]
        if len(labels) > 1:
            choices = [
                Choice(f"{title[0].lower()}{place}", label, of_kind[label]) for place, label in enumerate(labels)
            ]
            made.append(Filter(title, choices))
    return made


def _style(filters: list[Filter]) -> str:
    """The page's style, and a rule for each filter: what is switched off is not shown."""
    names = [choice.name for one in filters for choice in one.choices]
    return _template("page.css") + "".join(
        f"body:has(#f-{name}:not(:checked)) .{name}{{display:none}}\n" for name in names
    )


def _contracts(overview: Overview, room: int) -> Iterator[tuple[str, ContractRecord]]:
    """What operations promise, as long as there is room."""
    for name, contract in sorted(overview.report.contracts.items()):
        room -= _size(name, contract.summary, *contract.rules, *contract.rules.values(), *contract.relaxations)
        if room > 0:
            yield name, contract


def _passing(overview: Overview, room: int) -> Iterator[tuple[str, int, str]]:
    """Paths, counts, and the parameters of each case, one a line, as long as there is room."""
    for path, parameters in sorted(overview.passing.items()):
        text = "\n".join(parameters).strip()
        bare = _size(path) + TAGS
        if (room := room - bare) < 0:
            return
        size = _size(text)
        yield path, len(parameters), text if size <= room else ""
        room -= size if size <= room else 0


def _size(*texts: str) -> int:
    """Bytes of texts in the page."""
    return sum(len(escape(text).encode()) for text in texts)
