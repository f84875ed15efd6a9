"""Operators on the statements of Metal text: loops, returns, assignments."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.mutation.operator import Edit, Operator
from mlx_assay.conformance.mutation.tokens import QUALIFIERS, TYPES, Code

ASSIGNMENTS = ("=", "+=", "-=", "|=", "&=", "*=")


def _loops(code: Code) -> Iterator[list[tuple[int, int]]]:
    """Of each `for`: first and last token of its start, its condition and its step."""
    for at, token in enumerate(code.tokens[:-1]):
        if token.text != "for" or code.word(at + 1) != "(":
            continue
        parts, first = [], at + 2
        for place in range(at + 2, code.partner[at + 1] + 1):
            if code.word(place) == ";" or place == code.partner[at + 1]:
                parts.append((first, place - 1))
                first = place + 1
        if len(parts) == 3 and all(first <= last for first, last in parts[1:]):
            yield parts


def _length(code: Code) -> Iterator[Edit]:
    for _, (first, last), _ in _loops(code):
        bounds = [at for at in range(first, last) if code.word(at) in ("<", "<=") and code.binary(at)]
        for at in bounds[:1]:
            start, end = code.tokens[at + 1].start, code.tokens[code.right(at)].end
            # One turn too many is what comparison-strictness makes.
            yield Edit(start, end, f"{code.text[start:end]} - 1")


def _parts(code: Code, first: int, last: int) -> Iterator[tuple[int, int]]:
    """First and last token of each of the expressions that commas join."""
    start = at = first
    while at <= last:
        if code.word(at) == ",":
            yield start, at - 1
            start = at + 1
        at = code.partner[at] + 1 if code.word(at) in ("(", "[", "{") else at + 1
    yield start, last


def _counters(code: Code, condition: tuple[int, int], step: tuple[int, int]) -> list[tuple[int, int]]:
    """The parts of a step that move what the condition asks for, or all of them."""

    def names(first: int, last: int) -> list[str]:
        return [code.word(at) for at in range(first, last + 1) if code.tokens[at].kind == "name"]

    asked, parts = names(*condition), list(_parts(code, *step))
    return [part for part in parts if any(name in asked for name in names(*part)[:1])] or parts


def _step(code: Code) -> Iterator[Edit]:
    """Every second turn only, or every turn of another thread too."""
    for _, condition, step in _loops(code):
        for first, last in _counters(code, condition, step):
            before, after = code.word(first), code.word(last)
            if before in ("++", "--"):
                other = f"{code.said(first + 1, last)} {before[0]}= 2"
            elif after in ("++", "--"):
                other = f"{code.said(first, last - 1)} {after[0]}= 2"
            else:
                other = f"{code.said(first, last)} + 1"
            yield Edit(code.tokens[first].start, code.tokens[last].end, other)


def _return(code: Code) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens[:-1]):
        if token.text == "return" and code.word(at + 1) == ";":
            yield Edit(token.start, token.end, "")


def _guarded_return(code: Code) -> Iterator[Edit]:
    """A value that is returned early, where a condition holds, is not."""
    for at, token in enumerate(code.tokens[:-1]):
        if token.text == "return" and code.word(at + 1) != ";" and code.word(at - 1) == ")":
            opened = code.partner[at - 1]
            if code.word(opened - 1) == "if":
                end = at
                while code.word(end) != ";":
                    end += 1
                yield Edit(code.tokens[opened - 1].start, code.tokens[end].end, "")


def _statement(code: Code) -> Iterator[Edit]:
    """An assignment outside of declarations and of a loop's head."""
    for at, token in enumerate(code.tokens):
        if token.text not in ASSIGNMENTS:
            continue
        start = code.statement(at)
        if code.word(start) in (*QUALIFIERS, *TYPES, "for") or code.word(start - 1) == "(":
            continue
        end = at
        while code.word(end) not in (";", ")", ""):
            end = code.partner[end] + 1 if code.word(end) in ("(", "[") else end + 1
        if code.word(end) == ";":
            yield Edit(code.tokens[start].start, code.tokens[end - 1].end, "")


OPERATORS = (
    Operator("loop-length", "a loop ends one too early", _length),
    Operator("loop-step", "a loop leaves turns out", _step),
    Operator("return-dropped", "who has nothing to do goes on", _return),
    Operator("early-value-dropped", "a special value is not told apart", _guarded_return),
    Operator("statement-dropped", "an assignment is not made", _statement),
)
