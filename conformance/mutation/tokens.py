"""Metal text as tokens: which `<` compares, which `*` multiplies, how far an operand reaches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_PATTERN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFhHuUlL]*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<operator><<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|->|::|[^\w\s])",
    re.DOTALL | re.MULTILINE,
)
_SILENT = ("space", "comment", "directive")
_OPENING, _CLOSING = "([{", ")]}"

QUALIFIERS = ("const", "constexpr", "constant", "device", "thread", "threadgroup", "inline")
FLOATS = ("float", "half", "bfloat", "T")
UNSIGNED = {"uint": "int", "ulong": "long", "ushort": "short", "size_t": "long"}
TYPES = (*FLOATS, *UNSIGNED, *UNSIGNED.values(), "bool", "uchar", "char", "void", "auto", "Words")
_KEYWORDS = ("return", "case", "else", "if", "for", "while", "do", "switch", "template", "typename")

PRECEDENCE = {
    **dict.fromkeys(("*", "/", "%"), 10),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("<", ">", "<=", ">="), 7),
    **dict.fromkeys(("==", "!="), 6),
    "&": 5,
    "^": 4,
    "|": 3,
    "&&": 2,
    "||": 1,
}
"""Binary operators of C++, the tightest highest."""


@dataclass(frozen=True)
class Token:
    """A piece of text that is neither space nor comment nor a directive."""

    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> Iterator[Token]:
    """Every token. ValueError: a character that begins none."""
    at = 0
    while at < len(text):
        found = _PATTERN.match(text, at)
        if found is None or found.lastgroup is None:
            raise ValueError(f"Expected Metal text but got {text[at : at + 20]!r} at {at}")
        if found.lastgroup not in _SILENT:
            yield Token(found.lastgroup, found[0], found.start(), found.end())
        at = found.end()


class Code:
    """A text and its tokens; places in it are indices of tokens."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(tokens(text))

    def __len__(self) -> int:
        return len(self.tokens)

    def word(self, at: int) -> str:
        """A token's text, empty beyond either end."""
        return self.tokens[at].text if 0 <= at < len(self.tokens) else ""

    def said(self, first: int, last: int) -> str:
        """The text from one token to another, both included."""
        return self.text[self.tokens[first].start : self.tokens[last].end] if first <= last else ""

    @cached_property
    def partner(self) -> dict[int, int]:
        """From each bracket to the one that closes or opens it."""
        found: dict[int, int] = {}
        stack: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.text in _OPENING:
                stack.append(at)
            elif token.text in _CLOSING and stack:
                found[at] = stack.pop()
                found[found[at]] = at
        return found

    @cached_property
    def angles(self) -> frozenset[int]:
        """The `<` and `>` that hold template parameters or arguments."""
        found: set[int] = set()
        for at, token in enumerate(self.tokens):
            before = self.tokens[at - 1] if at else None
            if token.text != "<" or before is None or before.kind != "name":
                continue
            if before.text == "template" or before.end == token.start:
                found |= self._template(at)
        return frozenset(found)

    def _template(self, at: int) -> set[int]:
        depth, after = 0, at
        while after < len(self.tokens) and self.word(after) not in (";", "{", "}", "&&", "||", ")"):
            if self.word(after) == "(":
                after = self.partner.get(after, after)
            depth += {"<": 1, ">": -1}.get(self.word(after), 0)
            if depth == 0:
                return {at, after}
            after += 1
        return set()

    def binary(self, at: int) -> bool:
        """Whether a token is an operator between two operands."""
        if self.word(at) not in PRECEDENCE or at in self.angles or not 0 < at < len(self.tokens) - 1:
            return False
        before, token, after = self.tokens[at - 1 : at + 2]
        if not (before.kind in ("name", "number") or before.text in (")", "]")) or before.text in _KEYWORDS:
            return False
        if after.text in (")", ",", ";", ">"):
            return False
        # `uint* words` and `x &y` declare; an operator has space on both sides, or on neither.
        return (before.end < token.start) == (token.end < after.start)

    def right(self, at: int) -> int:
        """The last token of the operand right of a binary operator."""
        level, end = PRECEDENCE[self.word(at)], self._primary(at + 1)
        while self.binary(end + 1) and PRECEDENCE[self.word(end + 1)] > level:
            end = self._primary(end + 2)
        return end

    def left(self, at: int) -> int:
        """The first token of the operand left of a binary operator."""
        level, start = PRECEDENCE[self.word(at)], self._primary_start(at - 1)
        while self.binary(start - 1) and PRECEDENCE[self.word(start - 1)] >= level:
            start = self._primary_start(start - 2)
        return start

    def _primary(self, at: int) -> int:
        """The last token of the unary expression that begins at a token."""
        while self.word(at) in ("-", "+", "!", "~", "*", "&", "++", "--"):
            at += 1
        if self.word(at) == "(" and self._cast(at):
            return self._primary(self.partner[at] + 1)
        end = self.partner.get(at, at) if self.word(at) == "(" else at
        while True:
            if self.word(end + 1) in ("::", ".", "->"):
                end += 2
            elif self.word(end + 1) in ("(", "["):
                end = self.partner[end + 1]
            elif self.word(end + 1) == "<" and end + 1 in self.angles:
                end = next(place for place in sorted(self.angles) if place > end + 1 and self.word(place) == ">")
            else:
                return end

    def _cast(self, at: int) -> bool:
        return self.word(self.partner[at] - 1) == "*" and self.word(self.partner[at] + 1) in ("(", "&")

    def _primary_start(self, at: int) -> int:
        start = at
        while True:
            if self.word(start) in (")", "]"):
                start = self.partner[start]
                if self._operand_ends(start - 1):
                    start -= 1
                    continue
            elif self.word(start) == ">" and start in self.angles:
                start = max(place for place in self.angles if place < start and self.word(place) == "<") - 1
                continue
            if self.word(start - 1) in ("::", ".", "->"):
                start -= 2
                continue
            break
        while self.word(start - 1) in ("-", "!", "~") and not self.binary(start - 1):
            start -= 1
        return start

    def _operand_ends(self, at: int) -> bool:
        token = self.tokens[at] if at >= 0 else None
        if token is None or token.text in _KEYWORDS:
            return False
        return token.kind == "name" or token.text == "]" or (token.text == ">" and at in self.angles)

    def statement(self, at: int) -> int:
        """The first token of the statement that a token stands in."""
        start = at
        while start > 0:
            before = self.word(start - 1)
            if before in (")", "]"):
                opened = self.partner[start - 1]
                if before == ")" and self.word(opened - 1) in ("if", "for", "while", "switch"):
                    return start
                start = opened
                continue
            if before in (";", "{", "}", "else", ":"):
                return start
            if before == "(" and self.word(start - 2) == "for":
                return start
            start -= 1
        return start

    def declares(self, at: int) -> bool:
        """Whether a token stands in a declaration before its initial value."""
        start = self.statement(at)
        if self.word(start) not in (*QUALIFIERS, *TYPES):
            return False
        return "=" not in (self.word(place) for place in range(start, at))

    def arguments(self, opened: int) -> list[tuple[int, int]]:
        """First and last token of each argument between a bracket and its partner."""
        found, first, at = [], opened + 1, opened + 1
        while at <= self.partner[opened]:
            if self.word(at) in ("(", "[", "{"):
                at = self.partner[at]
            elif self.word(at) == "," or at == self.partner[opened]:
                if first < at:
                    found.append((first, at - 1))
                first = at + 1
            at += 1
        return found

    def calls(self, *names: str) -> Iterator[tuple[int, int]]:
        """The name and the opening bracket of each call of functions."""
        for at, token in enumerate(self.tokens[:-1]):
            if token.text in names and self.word(at + 1) == "(" and not self.declares_function(at):
                yield at, at + 1

    def declares_function(self, at: int) -> bool:
        """Whether a name is the one of a function that is defined here."""
        return self.word(at - 1) in TYPES and self.word(self.partner.get(at + 1, at) + 1) == "{"
