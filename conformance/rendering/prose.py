"""Prose: a text of unknown origin in a Markdown document, shown as it stands. Raw, it is still read with ease."""

from __future__ import annotations

import re

STRUCTURE = frozenset("\\`*_{}[]<>#!|~&@$^")
AT_FIRST = frozenset("-+=")
"""Signs that are structure at the beginning of a line alone."""
NUMBERED = re.compile(r"^(\d+)([.)])")
JOINING = frozenset("/_+-")
"""Behind a colon, beside letters and digits: what makes an address or a picture of it."""
REFERENCE = re.compile(r"#?[A-Za-z0-9]+;")
"""Behind an ampersand what makes a reference of it."""
UNLINKED = "&#8203;"
"""A space without width behind what GitHub would take for a mention or an issue."""
ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]+)?/[A-Za-z0-9._~:/?#@!$()*+,;=%-]*")
"""Addresses in which no sign is structure between angle brackets."""


def prose(text: str) -> str:
    """Text as text: every sign that could be structure as a reference, which never is; no link, mention or issue."""
    return "<br>".join(_first(line.strip()) for line in text.split("\n"))


def code(text: str) -> str:
    """Text in the type of code, for a table or a line; references are read within the tags, backticks are not."""
    return f"<code>{'<br>'.join(_signs(line.strip()) for line in text.split(chr(10)))}</code>" if text else ""


def link(address: str) -> str:
    """An address that can be followed, where it is plainly one; else its text."""
    return f"<{address}>" if ADDRESS.fullmatch(address) else prose(address)


def _first(line: str) -> str:
    """A line that may stand at the beginning of a block."""
    made = _signs(line)
    if made[:1] in AT_FIRST and made:
        made = f"&#{ord(made[0])};{made[1:]}"
    return NUMBERED.sub(lambda found: f"{found[1]}&#{ord(found[2])};", made)


def _signs(line: str) -> str:
    return "".join(_sign(line, place) for place in range(len(line)))


def _sign(line: str, place: int) -> str:
    sign, before, after = line[place], line[place - 1 : place].lower(), line[place + 1 : place + 2]
    steers = (sign in STRUCTURE or not sign.isprintable()) and not _within(sign, before, line[place + 1 :])
    joins = (sign == ":" and (after.isalnum() or after in JOINING) and after != "") or (sign == "." and before == "w")
    if not steers and not joins:
        return sign
    return f"&#{ord(sign)};" + (UNLINKED if sign in "@#" and after.isalnum() else "")


def _within(sign: str, before: str, behind: str) -> bool:
    """Signs that are no structure where they stand: an underline within a word, an ampersand before no reference."""
    if sign == "_":
        return before.isascii() and before.isalnum() and behind[:1].isascii() and behind[:1].isalnum()
    return sign == "&" and not REFERENCE.match(behind)
