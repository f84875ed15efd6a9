"""A campaign as one HTML file, in the style of a report's page: no script, no network, no other file."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from mlx_assay.conformance.mutation.report import Campaign, Row
from mlx_assay.conformance.mutation.ruling import EQUIVALENT, KILLED, SURVIVED
from mlx_assay.conformance.mutation.table import first_killer, grouped


@dataclass(frozen=True)
class Line:
    """One operator on one operation: its mutants by outcome, and who kills the most of them."""

    operation: str
    operator: str
    count: int
    killed: int
    equivalent: int
    survived: int
    killer: str


def page(report: Campaign) -> str:
    """The whole page."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_template),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = _template("page.css")
    return environment.get_template("mutants.html.jinja").render(
        report=report,
        verdict=verdict(report),
        lines=[_line(operation, operator, rows) for (operation, operator), rows in grouped(report)],
        survivors=[row for row in report.mutants if row.outcome == SURVIVED],
        reasons=_reasons(report),
        style=Markup(style),
        digest=b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )


def verdict(report: Campaign) -> str:
    """Named as a run's: conforms where nothing survives, incomplete where mutants were not judged."""
    if not report.complete:
        return "incomplete"
    return "differs" if report.totals[SURVIVED] else "conforms"


def _line(operation: str, operator: str, rows: list[Row]) -> Line:
    by = Counter(row.outcome for row in rows)
    return Line(operation, operator, len(rows), by[KILLED], by[EQUIVALENT], by[SURVIVED], first_killer(rows))


def _reasons(report: Campaign) -> list[tuple[str, list[str]]]:
    """Each reason with the mutants it is given for."""
    found: dict[str, list[str]] = {}
    for mutant_id, reason in report.reasons.items():
        found.setdefault(reason, []).append(mutant_id)
    return list(found.items())


def _template(name: str) -> str:
    return files("mlx_assay.conformance.rendering").joinpath("templates", name).read_text(encoding="utf-8")
