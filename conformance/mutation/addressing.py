"""Operators on where Metal text reads and writes: indices, strides, and what a thread knows of its place."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.mutation.operator import Edit, Operator
from mlx_assay.conformance.mutation.tokens import UNSIGNED, Code

PLACES = {
    "thread_position_in_threadgroup": ("thread_position_in_grid",),
    "thread_position_in_grid": ("thread_position_in_threadgroup",),
    "threadgroup_position_in_grid": ("thread_position_in_grid",),
    "thread_index_in_simdgroup": ("thread_index_in_threadgroup", "simdgroup_index_in_threadgroup"),
    "simdgroup_index_in_threadgroup": ("thread_index_in_simdgroup",),
    "threads_per_threadgroup": ("threads_per_grid",),
    "threadgroups_per_grid": ("threads_per_grid",),
}
AXES = {"x": "y", "y": "x", "z": "x"}


def _subscripts(code: Code) -> Iterator[tuple[int, int]]:
    """First and last token between the brackets of each element that is read or written."""
    for at, token in enumerate(code.tokens):
        if token.text == "[" and not code.declares(at):
            yield at + 1, code.partner[at] - 1


def _index(code: Code) -> Iterator[Edit]:
    for first, last in _subscripts(code):
        start, end = code.tokens[first].start, code.tokens[last].end
        said = code.text[start:end]
        if not said.isdigit():
            yield from (Edit(start, end, f"({said}) {sign} 1") for sign in "+-")


def _slot_fixed(code: Code) -> Iterator[Edit]:
    for first, last in _subscripts(code):
        if code.said(first, last) != "0":
            yield Edit(code.tokens[first].start, code.tokens[last].end, "0")


def _neighbour(code: Code) -> Iterator[Edit]:
    """Bytes and words in the other order, two by two."""
    for first, last in _subscripts(code):
        if code.tokens[first - 2].text in ("bits", "words", "codes", "loaded", "row"):
            start, end = code.tokens[first].start, code.tokens[last].end
            yield Edit(start, end, f"({code.text[start:end]}) ^ 1u")


def _counts(code: Code, at: int) -> bool:
    """Whether a product is one of whole numbers: in brackets, or in the declaration of such a number."""
    start = code.statement(at)
    return "[" in code.said(start, at) or bool({code.word(start), code.word(start + 1)} & {"int", *UNSIGNED})


def _stride(code: Code) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text == "*" and code.binary(at) and code.right(at) == at + 1 and _counts(code, at):
            by = code.tokens[at + 1]
            if by.kind == "name":
                yield Edit(by.start, by.end, f"({by.text} + 1)")


def _place(code: Code) -> Iterator[Edit]:
    for token in code.tokens:
        for other in PLACES.get(token.text, ()):
            yield Edit(token.start, token.end, other)


def _axis(code: Code) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in AXES and code.word(at - 1) == "." and code.word(at - 2) in PLACES:
            yield Edit(token.start, token.end, AXES[token.text])


OPERATORS = (
    Operator("index-off-by-one", "the element before or behind", _index),
    Operator("slot-fixed", "always the first element: stale memory, one row for all", _slot_fixed),
    Operator("order-of-words", "bytes or words in the other order", _neighbour),
    Operator("stride-off", "a stride one too long", _stride),
    Operator("place-mistaken", "the index in the grid for the one in the threadgroup, and the like", _place),
    Operator("axis-mistaken", "another axis of a thread's place", _axis),
)
