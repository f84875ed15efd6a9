"""Operators on comparisons and conditions of Metal text."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.mutation.operator import Edit, Operator
from mlx_assay.conformance.mutation.tokens import Code

STRICTNESS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
REVERSED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="}
JOINED = {"&&": "||", "||": "&&"}
CHECKS = {"isnan": "false", "isfinite": "true", "isinf": "false"}
EXTREMES = {"min": "max", "max": "min", "fmin": "fmax", "fmax": "fmin", "clamp": "max"}


def _swapped(code: Code, table: dict[str, str]) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in table and code.binary(at):
            yield Edit(token.start, token.end, table[token.text])


def _strictness(code: Code) -> Iterator[Edit]:
    return _swapped(code, STRICTNESS)


def _reversed(code: Code) -> Iterator[Edit]:
    """Not of a loop's bound, which would leave the loop without a turn."""
    heads = [(at, code.partner[at + 1]) for at, token in enumerate(code.tokens) if token.text == "for"]
    spans = [(code.tokens[first].start, code.tokens[last].end) for first, last in heads]
    for edit in _swapped(code, REVERSED):
        if not any(start < edit.start < end for start, end in spans):
            yield edit


def _joined(code: Code) -> Iterator[Edit]:
    return _swapped(code, JOINED)


def _conditions(code: Code) -> Iterator[tuple[int, int]]:
    """First and last token of what an `if` or `while` asks."""
    for at, token in enumerate(code.tokens[:-1]):
        if token.text in ("if", "while") and code.word(at + 1) == "(":
            yield at + 2, code.partner[at + 1] - 1


def _negated(code: Code) -> Iterator[Edit]:
    """Where it is no single comparison, which comparison-reversed turns round."""
    for first, last in _conditions(code):
        start, end = code.tokens[first].start, code.tokens[last].end
        alone = [at for at in range(first, last) if code.binary(at) and code.word(at) in REVERSED]
        if len(alone) != 1 or code.left(alone[0]) > first or code.right(alone[0]) < last:
            yield Edit(start, end, f"!({code.text[start:end]})")


def _part_dropped(code: Code) -> Iterator[Edit]:
    """Either side of `&&` and `||`: the check of a bound is one."""
    for at, token in enumerate(code.tokens):
        if token.text in JOINED and code.binary(at):
            yield Edit(code.tokens[at].start, code.tokens[code.right(at)].end, "")
            yield Edit(code.tokens[code.left(at)].start, code.tokens[at].end, "")


def _check_dropped(code: Code) -> Iterator[Edit]:
    """What is done under a condition is done always; what is done never is statement-dropped's."""
    for first, last in _conditions(code):
        yield Edit(code.tokens[first].start, code.tokens[last].end, "true")


def _arms(code: Code) -> Iterator[tuple[int, int, int]]:
    """The question mark, the colon and the last token of each conditional expression."""
    for at, token in enumerate(code.tokens):
        if token.text != "?":
            continue
        colon = at + 1
        while code.word(colon) != ":":
            colon = code.partner[colon] + 1 if code.word(colon) in ("(", "[") else colon + 1
        end = colon + 1
        while code.word(end + 1) not in (";", ",", ")", "]", "}", ":", ""):
            end = code.partner[end + 1] if code.word(end + 1) in ("(", "[") else end + 1
        if code.word(end) in ("(", "["):
            end = code.partner[end]
        yield at, colon, end


def _arms_swapped(code: Code) -> Iterator[Edit]:
    for at, colon, end in _arms(code):
        one, other = code.said(at + 1, colon - 1), code.said(colon + 1, end)
        if "?" not in other:
            yield Edit(code.tokens[at + 1].start, code.tokens[end].end, f"{other} : {one}")


def _not_a_number(code: Code) -> Iterator[Edit]:
    for at, opened in code.calls(*CHECKS):
        yield Edit(code.tokens[at].start, code.tokens[code.partner[opened]].end, CHECKS[code.word(at)])


def _extremes(code: Code) -> Iterator[Edit]:
    for at, opened in code.calls(*EXTREMES):
        token = code.tokens[at]
        yield Edit(token.start, token.end, EXTREMES[token.text])
        for first, last in code.arguments(opened):
            yield Edit(token.start, code.tokens[code.partner[opened]].end, f"({code.said(first, last)})")


OPERATORS = (
    Operator("comparison-strictness", "a comparison admits equality, or no longer does: ties and bounds", _strictness),
    Operator("comparison-reversed", "a comparison asks the opposite", _reversed),
    Operator("condition-joined", "`and` for `or`, and the reverse", _joined),
    Operator("condition-negated", "a condition asks the opposite", _negated),
    Operator("condition-part-dropped", "one of two conditions is not asked: a bound, a tail", _part_dropped),
    Operator("condition-constant", "a condition always holds", _check_dropped),
    Operator("arms-swapped", "a conditional expression gives the other value", _arms_swapped),
    Operator("nan-rule-dropped", "a number that is none is taken for one", _not_a_number),
    Operator("extreme-swapped", "the least for the greatest, or one of the two unasked", _extremes),
)
