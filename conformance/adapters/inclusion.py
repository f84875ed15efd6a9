"""What a kernel's text from outside may include: headers of Metal and of MLX by name, and no file of this machine."""

from __future__ import annotations

import re

HEADER = r"<(?:metal|simd)(?:_\w+|/[\w/]+(?:\.h)?)>|\"mlx/(?:\w+/)*\w+\.h\""
"""Spellings that are allowed, as `<metal_stdlib>`, `<simd/simd.h>` and `"mlx/backend/metal/kernels/utils.h"`."""

_MARK = r"(?:\#|%:|\?\?=)(?:\s|(?>/\*.*?\*/))*+"
_DIRECTIVE = re.compile(rf"{_MARK}(?:include|include_next|import|embed)\b[^\n]*", re.S)
_ALLOWED = re.compile(rf"\#[ \t]*include[ \t]*(?:{HEADER})[ \t]*(?://[^\n]*)?")
_WORD = re.compile(
    rf"\b__has_(?:include|include_next|embed)\b|(?:{_MARK}pragma|_Pragma)\b[^\n]*\b(?:dependency|module)\b", re.S
)


def refused(text: str) -> str | None:
    """The first thing in a text that makes a compiler look at a file of the machine, or None.

    Comments are read as well: what only looks like a directive to this is refused, nothing that is one passes.
    """
    spliced = re.sub(r"\\[ \t]*\r?\n", "", text.replace("\r\n", "\n").replace("\r", "\n"))
    for match in _DIRECTIVE.finditer(spliced):
        if not _ALLOWED.fullmatch(match[0].rstrip()):
            return match[0].strip()[:200]
    found = _WORD.search(spliced)
    return found[0].strip()[:200] if found else None
