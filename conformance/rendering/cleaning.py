"""Cleaning: a report whose texts and numbers are fit to be shown, whoever wrote them."""

from __future__ import annotations

from typing import Any

import msgspec

from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.reporting.report import Report

PROSE = frozenset({"message", "output", "explanation", "summary", "rules"})
"""Fields whose texts may have several lines; a line break in any other is shown as `\\x0a`."""
LONGEST = {
    "output": 6000,
    "message": 4000,
    "explanation": 1000,
    "rules": 1000,
    "id": 600,
    "replay": 1200,
    "operation": 100,
    "dtype": 40,
}
OTHERWISE = 400
GREATEST = 2**63
"""What no count reaches: numbers beyond it are refused, since their digits alone could fill a page."""


def clean(report: Report) -> Report:
    """The same report, control characters and reversals of direction visible, texts cut; ValueError for huge numbers.

    Every rendering starts from such a report, and has only its own syntax to escape.
    """
    cleaned: Report = msgspec.convert(_cleaned(msgspec.to_builtins(report), ""), Report)
    return cleaned


def _cleaned(value: Any, field: str) -> Any:
    if isinstance(value, str):
        return visible(value, LONGEST.get(field, OTHERWISE), field in PROSE)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        if abs(value) >= GREATEST:
            raise ValueError(f"Expected numbers below 2^63 but got one of {value.bit_length()} bits in {field!r}")
        return value
    if isinstance(value, list):
        return [_cleaned(item, field) for item in value]
    if isinstance(value, dict):
        names = field if field == "rules" else ""
        return {visible(key, OTHERWISE): _cleaned(item, names or key) for key, item in value.items()}
    return value


def visible(text: str, limit: int = OTHERWISE, prose: bool = False) -> str:
    """A text of `limit` characters or few more, nothing in it that is not shown; lines stay apart only in prose."""
    rest = len(text) - limit
    if rest > 0:
        text = text[:limit]
    text = text.replace("\t", "    ")
    text = "\n".join(map(printable, text.split("\n"))) if prose else printable(text)
    return f"{text}... ({rest} more characters)" if rest > 0 else text
