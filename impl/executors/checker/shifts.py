"""Counts of shifts, written so that clang cannot fold them.

It takes a constant one modulo the width, as OpenCL asks, before there is an instruction to look at, and warns of none.
"""

import re
from collections.abc import Iterator

KEPT, FOLDED = "assay::Kept()", "assay::Folded()"
"""What counts are added to, see runtime/shifts.h. Of Kept none of 32 or more is a constant; of Folded each is."""

_TOKEN = re.compile(r"\boperator\s*(?:<<=?|>>=?|<=?|>=?)|<<=|>>=|<<|>>|->|<=|>=|&&|[<>;{}()\[\]]")
_DIRECTIVE, _MACRO = re.compile(r"\s*#"), re.compile(r"\s*#\s*define\b")

WAYS = ((KEPT, True), (FOLDED, True), (FOLDED, False))
"""Marks, and whether macros have them too: from what shows most to what most texts bear."""


def _shifts(code: str) -> Iterator[int]:
    """Where each operator of a shift ends. `>>` may close two templates too, which open within the same brackets."""
    opened = [0]
    for match in _TOKEN.finditer(code):
        token = match[0]
        if token in ("<<", "<<=", ">>=") or (token == ">>" and opened[-1] < 2):
            yield match.end()
        elif token == ">>":
            opened[-1] -= 2
        elif token == "<":
            opened[-1] += 1
        elif token == ">":
            opened[-1] = max(opened[-1] - 1, 0)
        elif token in "([":
            opened.append(0)
        elif token in ")]":
            opened = opened[:-1] or [0]
        elif token in ";{}":
            opened = [0]


def marked(text: str, mark: str, macros: bool) -> str:
    """The text of a translated kernel, line for line, in which each shift's count is added to `mark`."""
    out, at = [], 0
    for end in _shifts(text):
        begin = text.rfind("\n", 0, end) + 1
        if not _DIRECTIVE.match(text, begin, end) or (macros and _MACRO.match(text, begin, end)):
            out += [text[at:end], f" {mark} +"]
            at = end
    return "".join(out) + text[at:]
