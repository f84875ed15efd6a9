"""Quotation: texts that something untrusted wrote, so that none steers a terminal or passes for the suite's own."""

from __future__ import annotations

import re

MARK = "  | "
"""Before each line that is not the suite's own."""

_COMMAND = re.compile(r"\A(\s*):(?=:)|#(?=#\[)")
"""Where GitHub's runner would obey a line: at `::` behind blanks, and at `##[` anywhere."""


def printable(text: str) -> str:
    """The text as one line that steers neither a terminal nor GitHub's runner: what would is shown as an escape."""
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else _escape(ord(sign)) for sign in text)
    return _COMMAND.sub(lambda found: "\\x23" if found[1] is None else f"{found[1]}\\x3a", text)


def passage(text: str, indent: str = "") -> str:
    """A text of several lines, `indent` before those after the first.

    Each of them that does not stand behind blanks already gets a mark.
    """
    first, *rest = map(printable, text.split("\n"))
    return "\n".join([first, *(indent + (line if line.startswith("  ") else MARK + line) for line in rest)])


def quoted(text: str) -> str:
    """A text whose lines after the first stand behind a mark."""
    return text.replace("\n", f"\n{MARK}")


def legible(text: str, limit: int) -> str:
    """The first characters of a text, none of which steers a terminal; its lines stay apart."""
    shown = text[:limit]
    if shown.replace("\n", "").replace("\t", "").isprintable():
        return shown
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in shown)


def phrase(text: str, limit: int) -> str:
    """The same of a text that is one line, whatever its author made of it."""
    return legible(text, limit).replace("\n", "\\x0a").replace("\t", " ")


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
