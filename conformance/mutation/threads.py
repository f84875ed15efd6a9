"""Operators on what threads of Metal text share: barriers, lanes, sums across a simdgroup."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_assay.conformance.mutation.operator import Edit, Operator
from mlx_assay.conformance.mutation.tokens import Code

BARRIERS = ("threadgroup_barrier", "simdgroup_barrier")
FLAGS = ("mem_none", "mem_device", "mem_threadgroup")
COLLECTIVES = {
    "simd_sum": ("simd_max", "simd_prefix_inclusive_sum"),
    "simd_product": ("simd_sum",),
    "simd_min": ("simd_max",),
    "simd_max": ("simd_min",),
    "simd_and": ("simd_or",),
    "simd_or": ("simd_and",),
    "simd_broadcast_first": (),
}
DISTANCES = ("simd_shuffle", "simd_shuffle_xor", "simd_shuffle_up", "simd_shuffle_down", "simd_broadcast")


def _barrier(code: Code) -> Iterator[Edit]:
    for at, opened in code.calls(*BARRIERS):
        yield Edit(code.tokens[at].start, code.tokens[code.partner[opened]].end, "")


def _flags(code: Code) -> Iterator[Edit]:
    for at, token in enumerate(code.tokens):
        if token.text in FLAGS and code.word(at - 2) == "mem_flags":
            yield from (Edit(token.start, token.end, other) for other in FLAGS[:2] if other != token.text)


def _collective(code: Code) -> Iterator[Edit]:
    for at, opened in code.calls(*COLLECTIVES):
        token = code.tokens[at]
        yield from (Edit(token.start, token.end, other) for other in COLLECTIVES[token.text])
        first, last = opened + 1, code.partner[opened] - 1
        yield Edit(token.start, code.tokens[last + 1].end, f"({code.said(first, last)})")


def _distance(code: Code) -> Iterator[Edit]:
    for at, opened in code.calls(*DISTANCES):
        first, last = code.arguments(opened)[1]
        start, end = code.tokens[first].start, code.tokens[last].end
        said = code.text[start:end]
        for other in (f"{said} / 2", f"{said} * 2", f"{said} + 1", f"{said} - 1"):
            yield Edit(start, end, f"ushort(({other}) % 32)")
        value = code.said(*code.arguments(opened)[0])
        yield Edit(code.tokens[at].start, code.tokens[code.partner[opened]].end, f"({value})")


OPERATORS = (
    Operator("barrier-dropped", "threads do not wait for each other", _barrier, same_code=False),
    Operator("barrier-weakened", "a barrier orders other memory than what is shared", _flags, same_code=False),
    Operator("collective-swapped", "another operation across the lanes, or none", _collective),
    Operator("lane-distance", "the value of another lane, or the lane's own", _distance),
)
