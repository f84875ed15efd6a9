"""Operators on numbers of Metal text: constants, initial values, sums, bits, and the order in which they are taken."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from mlx_assay.conformance.mutation.operator import Edit, Operator
from mlx_assay.conformance.mutation.tokens import Code

SWAPPED = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
BITS = {"&": "|", "|": "&", "<<": ">>", ">>": "<<"}
COMPOUND = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "*=": "/="}
SMALL = 1024
"""Numbers up to this one are made greater only: one less is what other operators make of a bound or an index."""
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
_FLOAT = re.compile(r"((?:\d+\.\d*|\.\d+|\d+[eE]|\d+(?=f))[-+\deE]*)([fFhH]?)")


def _operators(code: Code, table: dict[str, str]) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in table and code.binary(at):
            yield Edit(token.start, token.end, table[token.text])


def _swapped(code: Code) -> Iterator[Edit]:
    yield from _operators(code, SWAPPED)
    for token in code.tokens:
        if token.text in COMPOUND:
            yield Edit(token.start, token.end, COMPOUND[token.text])


def _bits(code: Code) -> Iterator[Edit]:
    return _operators(code, BITS)


def _counted(code: Code) -> Iterator[tuple[int, int]]:
    """Each integer literal and its value."""
    for at, token in enumerate(code.tokens):
        if token.kind == "number" and (found := _INTEGER.fullmatch(token.text)):
            yield at, int(found[1], 0)


def _off_by_one(code: Code) -> Iterator[Edit]:
    for at, value in _counted(code):
        token = code.tokens[at]
        found = _INTEGER.fullmatch(token.text)
        assert found is not None
        exact = found[1][:2].lower() == "0x" or value > SMALL or code.word(at - 1) == "["
        for other in (value + 1, value - 1) if exact and value else (value + 1,):
            if other > 0xFFFFFFFF:
                continue
            written = f"{other:#0{len(found[1])}x}" if found[1][:2].lower() == "0x" else str(other)
            yield Edit(token.start, token.end, written + found[2])


def neighbours(value: float) -> tuple[float, float]:
    """The float32 numbers next to one, towards infinity and towards minus infinity."""
    bits = struct.unpack("<i", struct.pack("<f", value))[0]
    step = 1 if value > 0 else -1
    pair = [struct.unpack("<f", struct.pack("<i", bits + move))[0] for move in (step, -step)]
    return pair[0], pair[1]


def _last_place(code: Code) -> Iterator[Edit]:
    for token in code.tokens:
        found = _FLOAT.fullmatch(token.text) if token.kind == "number" else None
        if found and float(found[1]):
            for other in neighbours(float(found[1])):
                yield Edit(token.start, token.end, f"{other!r}{found[2]}")


def _initial(code: Code) -> Iterator[Edit]:
    """Of a variable that something is gathered in: it is not const, and its value is a constant."""
    for at, token in enumerate(code.tokens):
        if token.text != "=" or code.word(code.statement(at)) in ("const", "constexpr", "constant"):
            continue
        end = at + 1
        while code.word(end + 1) not in (";", ",", ")", ""):
            end += 1
        said = code.said(at + 1, end)
        start, stop = code.tokens[at + 1].start, code.tokens[end].end
        if said in ("0.0f", "0.0"):
            yield from (Edit(start, stop, other) for other in ("1.0f", "-0.0f"))
        elif said.lstrip("-") == "INFINITY":
            yield from (Edit(start, stop, other) for other in ("0.0f", said[1:] if said[0] == "-" else f"-{said}"))
        elif re.fullmatch(r"[A-Z][A-Z_]+", said):
            yield Edit(start, stop, "0")


def _sign_of_zero(code: Code) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in ("0.0f", "0.0h", "0.0") and code.word(at - 1) != "-":
            yield Edit(token.start, token.end, f"-{token.text}")


def _sign_dropped(code: Code) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in ("-", "!", "~") and not code.binary(at) and code.tokens[at + 1].start == token.end:
            yield Edit(token.start, token.end, "")


def _operand_dropped(code: Code, *operators: str) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in operators and code.binary(at):
            before = code.tokens[at - 1].end
            yield Edit(before, code.tokens[code.right(at)].end, "")


def _wrap(code: Code) -> Iterator[Edit]:
    return _operand_dropped(code, "%", "&")


def _shift(code: Code) -> Iterator[Edit]:
    """Off by one, and counted from the other end of a word."""
    for at, token in enumerate(code.tokens):
        if token.text in ("<<", ">>") and code.binary(at):
            first, last = at + 1, code.right(at)
            start, end = code.tokens[first].start, code.tokens[last].end
            said = code.said(first, last)
            if not said.rstrip("uU").isdigit():
                yield Edit(start, end, f"({said} + 1u)")
            yield Edit(start, end, f"(31u - {said})")


def _signed(code: Code) -> Iterator[Edit]:
    """What is shifted right keeps its sign."""
    for at, token in enumerate(code.tokens):
        if token.text == ">>" and code.binary(at):
            first = code.left(at)
            start, end = code.tokens[first].start, code.tokens[at - 1].end
            yield Edit(start, end, f"int({code.text[start:end]})")


def _order_of_sums(code: Code) -> Iterator[Edit]:
    """A loop that counts up by one counts down."""
    pattern = re.compile(r"(?:uint|int) (\w+) = (\w+); \1 < (.+); \+\+\1")
    for at, token in enumerate(code.tokens[:-1]):
        if token.text == "for" and code.word(at + 1) == "(":
            first, last = at + 2, code.partner[at + 1] - 1
            if found := pattern.fullmatch(code.said(first, last)):
                name, start, end = found.groups()
                turned = f"int {name} = int({end}) - 1; {name} >= int({start}); --{name}"
                yield Edit(code.tokens[first].start, code.tokens[last].end, turned)


OPERATORS = (
    Operator("arithmetic-swapped", "another operation on the same two numbers", _swapped),
    Operator("bits-swapped", "another operation on the same bits", _bits),
    Operator("integer-off-by-one", "a whole number one more or one less", _off_by_one),
    Operator("constant-last-place", "a constant off in its last place", _last_place),
    Operator("initial-value", "a wrong initial value", _initial),
    Operator("sign-of-zero", "minus zero for zero", _sign_of_zero),
    Operator("sign-dropped", "a sign or a negation is lost", _sign_dropped),
    # A shift as long as the word is undefined, and this machine's instruction happens to mask it.
    Operator("wrap-dropped", "a remainder or a mask is not taken", _wrap, same_code=False),
    Operator("shift", "a shift off by one, or counted from the other end of the word", _shift, same_code=False),
    Operator("unsigned-made-signed", "an unsigned number is taken for a signed one", _signed),
    Operator("order-reversed", "a loop runs from its end: another order of sums, of ties, of bytes", _order_of_sums),
)
