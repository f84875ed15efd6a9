"""Folding: lines no longer than a terminal is wide, broken between words, the rest behind a mark."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.text import Text

from mlx_assay.conformance.quotation import MARK

NARROWEST = 30
"""Columns below which nothing is folded: a mark and its indentation would take most of them."""
DEEPEST = 12
"""Blanks of indentation that folded lines keep, at most."""


def room(console: Console, environment: Mapping[str, str] = os.environ) -> int | None:
    """The columns to fold to: the terminal's, or those that COLUMNS asks for; None in a log and a pipe."""
    asked = environment.get("COLUMNS", "")
    if not console.is_terminal and not (asked.isascii() and asked.isdigit() and len(asked) < 6):
        return None
    width = console.width if console.is_terminal else int(asked)
    return width if width >= NARROWEST else None


def folded(line: Text, console: Console, width: int | None) -> Iterator[Text]:
    """The line, or its parts. What may not be broken stands as it is, but for pictures, which are cut."""
    if width is None or line.cell_len <= width:
        yield line
    elif line.no_wrap:
        if line.overflow == "crop":
            line = line.copy()
            line.truncate(width - 1, overflow="crop")
            line.append(">")
        yield line
    else:
        indent = len(line.plain) - len(line.plain.lstrip(" "))
        lead = Text(" " * min(indent, DEEPEST) + MARK.strip() + " ")
        first, *rest = line[indent:].wrap(console, width - max(indent, lead.cell_len))
        yield _joined(line[:indent], first)
        for part in rest:
            yield _joined(lead, part)


def _joined(lead: Text, part: Text) -> Text:
    part.rstrip()
    return Text(style=part.style).append_text(lead.copy()).append_text(part)
