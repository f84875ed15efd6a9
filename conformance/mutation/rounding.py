"""Operators on the numbers' formats in Metal text: where a value is rounded, how, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.mutation.operator import Edit, Operator
from mlx_assay.conformance.mutation.tokens import Code

FORMATS = ("T", "half", "bfloat")


def _casts(code: Code, *types: str) -> Iterator[tuple[int, int, str]]:
    """First and last token of each conversion to one of the types, and what is converted."""
    for at, opened in code.calls(*types):
        if code.word(at - 1) not in ("typename", ",", "<") or code.word(at - 1) == ",":
            yield at, code.partner[opened], code.said(opened + 1, code.partner[opened] - 1)


def _dropped(code: Code) -> Iterator[Edit]:
    for first, last, said in _casts(code, *FORMATS):
        yield Edit(code.tokens[first].start, code.tokens[last].end, f"({said})")


def _added(code: Code) -> Iterator[Edit]:
    """A float that was exact is a half in between."""
    for first, last, said in _casts(code, "float"):
        yield Edit(code.tokens[first].start, code.tokens[last].end, f"float(half({said}))")


def _truncated(code: Code) -> Iterator[Edit]:
    """To a bfloat that is no farther from zero, before the conversion that would round to nearest."""
    for first, last, said in _casts(code, *FORMATS):
        word = code.word(first)
        cut = f"as_type<float>(as_type<uint>(float({said})) & 0xffff0000u)"
        yield Edit(code.tokens[first].start, code.tokens[last].end, f"{word}({cut})")


def _half(code: Code) -> Iterator[Edit]:
    """A local float variable is a half."""
    for at, token in enumerate(code.tokens[:-2]):
        follows = code.tokens[at + 1]
        declared = follows.kind == "name" and code.word(at + 2) in ("=", "[", ";")
        if token.text == "float" and declared and code.statement(at) >= at - 2 and code.word(at - 1) != "threadgroup":
            yield Edit(token.start, token.end, "half")


def _fused(code: Code) -> Iterator[tuple[int, int, list[str]]]:
    for at, opened in code.calls("fma"):
        first = at - 2 if code.word(at - 1) == "::" else at
        yield first, code.partner[opened], [code.said(*argument) for argument in code.arguments(opened)]


def _split(code: Code) -> Iterator[Edit]:
    """Through its bits, lest the compiler make one operation of the two again."""
    for first, last, (one, other, added) in _fused(code):
        product = f"as_type<float>(as_type<uint>(float(({one}) * ({other}))))"
        yield Edit(code.tokens[first].start, code.tokens[last].end, f"({product} + ({added}))")


def _formed(code: Code) -> Iterator[Edit]:
    """The factor that stands in a fused product joins the others before: another rounding."""
    for first, last, (one, other, added) in _fused(code):
        left, star, right = one.rpartition(" * ")
        if star:
            regrouped = f"metal::fma({left}, {right} * ({other}), {added})"
            yield Edit(code.tokens[first].start, code.tokens[last].end, regrouped)
        else:
            yield Edit(code.tokens[first].start, code.tokens[last].end, f"metal::fma({one}, {other}, -({added}))")


OPERATORS = (
    Operator("rounding-dropped", "a value is not rounded to the output's format where it should be", _dropped),
    Operator("rounding-added", "a value is rounded to half on its way", _added),
    Operator("rounding-truncated", "a value is cut, not rounded to nearest", _truncated),
    Operator("half-variable", "a float is held, or gathered, in a half", _half),
    Operator("fma-split", "product and sum are rounded apart", _split),
    Operator("fma-regrouped", "a fused operation takes other operands", _formed),
)
