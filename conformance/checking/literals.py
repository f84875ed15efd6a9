"""The text literals of a Python file as the lines that they make, and the file's line on which each of them stands."""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

HOLE = "\0"
"""Stands in a literal's line for what is filled in when the program runs."""

_BEGIN = re.compile(r"([A-Za-z]{0,2})(\"\"\"|'''|\"|')")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = re.compile(r"[0-7]{1,3}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]*\}")
_BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


Span = tuple[int, int]


class Character(NamedTuple):
    """A character of a literal's value, and the number of the line where it is written."""

    text: str
    line: int


class Piece(NamedTuple):
    """Neighbouring literals: the lines that they make, the number of the file's line for each, and the last line.

    `around` are the first and the last line of each expression, statement and function that they stand in.
    """

    lines: list[str]
    numbers: list[int]
    last: int
    around: set[Span]


def pieces(text: str) -> list[Piece]:
    """The literals of a program; docstrings and other bare texts are none. SyntaxError, ValueError: it is none."""
    tree, rows = ast.parse(text), [row.encode() for row in text.split("\n")]
    found: list[Piece] = []
    for node, around in _nodes(tree):
        lines, numbers = _lines(list(characters(written(rows, node), node.lineno)), node.lineno)
        if not any(line.strip() for line in lines):
            # What stands between two literals of a text, as a rule.
            continue
        if found and node.lineno <= found[-1].last:
            found[-1].lines.extend(lines)
            found[-1].numbers.extend(numbers)
            last = max(found[-1].last, node.end_lineno or node.lineno)
            found[-1] = found[-1]._replace(last=last, around=found[-1].around | around)
        else:
            found.append(Piece(lines, numbers, node.end_lineno or node.lineno, set(around)))
    return found


def _nodes(tree: ast.AST) -> list[tuple[ast.expr, frozenset[Span]]]:
    """Text literals by their place, and what they stand in; the parts of a formatted one are its own."""
    bare, found = set(), []
    waiting: list[tuple[ast.AST, frozenset[Span]]] = [(tree, frozenset())]
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.expr | ast.stmt):
            around |= {(node.lineno, node.end_lineno or node.lineno)}
        if isinstance(node, ast.Expr):
            bare.add(id(node.value))
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            if id(node) not in bare:
                found.append((node, around))
            continue
        waiting.extend((child, around) for child in ast.iter_child_nodes(node))
    return sorted(found, key=lambda one: (one[0].lineno, one[0].col_offset))


def written(rows: list[bytes], node: ast.expr) -> str:
    """A node as it is written; columns are in bytes."""
    last = node.end_lineno or node.lineno
    own = rows[node.lineno - 1 : last]
    own[-1] = own[-1][: node.end_col_offset]
    own[0] = own[0][node.col_offset :]
    return b"\n".join(own).decode(errors="replace")


def characters(written: str, line: int) -> Iterator[Character]:
    """What the literals that stand one behind another are worth."""
    at = 0
    while at < len(written):
        if begin := _BEGIN.match(written, at):
            end, body = _body(written, begin, line)
            yield from body
            line += written.count("\n", at, end)
            at = end
        elif written[at] == "#":
            at = _found(written, "\n", at)
        else:
            line += written[at] == "\n"
            at += 1


def _body(written: str, begin: re.Match[str], line: int) -> tuple[int, list[Character]]:
    """Where a literal ends, and its characters."""
    prefix, quote = begin[1].lower(), begin[2]
    raw, formatted = "r" in prefix, bool(set("ft") & set(prefix))
    at = begin.end()
    body: list[Character] = []
    while at < len(written) and not written.startswith(quote, at):
        character = written[at]
        text, end = character, at + 1
        if character == "\\":
            text, end = (written[at : at + 2], at + 2) if raw else _escape(written, at)
        elif formatted and character in "{}":
            text, end = (character, at + 2) if written.startswith(character * 2, at) else (HOLE, _filled(written, at))
        body.extend(Character(one, line) for one in text)
        line += written.count("\n", at, end)
        at = end
    return at + len(quote), body


def _escape(written: str, at: int) -> tuple[str, int]:
    follows = written[at + 1 : at + 2]
    if follows == "\n":
        return "", at + 2
    if follows in _ESCAPES:
        return _ESCAPES[follows], at + 2
    if not (found := _ESCAPED.match(written, at + 1)):
        return "\\" + follows, at + 2
    if follows == "N":
        try:
            return unicodedata.lookup(found[0][2:-1]), found.end()
        except KeyError:
            return HOLE, found.end()
    number = int(found[0], 8) if follows.isdigit() else int(found[0][1:], 16)
    return chr(number) if number < 0x110000 else HOLE, found.end()


def _filled(written: str, at: int) -> int:
    """Where a part of a formatted literal ends that begins at a brace."""
    depth = 0
    while at < len(written):
        character = written[at]
        depth += _BRACKETS.get(character, 0)
        at += 1
        if depth <= 0:
            return at
        if character in "'\"":
            at = _found(written, character, at) + 1
    return at


def _found(text: str, what: str, at: int) -> int:
    place = text.find(what, at)
    return place if place >= 0 else len(text)


def _lines(characters: list[Character], first: int) -> tuple[list[str], list[int]]:
    """Lines, and where the first character of each that is no blank stands."""
    lines, numbers, line, number = [], [], "", first
    for text, where in characters:
        if text == "\n":
            lines.append(line)
            numbers.append(number if line.strip() else where)
            line, number = "", where
            continue
        if not line.strip():
            number = where
        line += text
    if line:
        lines.append(line)
        numbers.append(number)
    return lines, numbers
