"""What lanes of a simdgroup give each other, all of it in one kernel, held against Metal's words for it in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import host, metal_kernel, use
from mlx_assay.impl.executors.fidelity import SWITCHES, switched
from mlx_assay.impl.executors.translation import translate

# Lanes are missing on purpose.
pytestmark = pytest.mark.filterwarnings("ignore::mlx_assay.impl.executors.DivergenceWarning")

WHOLE = 0xFFFFFFFF
ABSENT, UNTOUCHED = 0xDEADBEEF, 7
"""What a lane gets from one that takes no part, and what one that takes no part keeps."""

SETS = (WHOLE, 0x7FFFFFFF, 0xFFFFFFFE, 0xAAAAAAAA, 0x000FFFF0, 0x80000001, 0x00010000)
VALUES = [3 * lane + 1000 for lane in range(32)]

Route = Callable[[int, int], int | None]
ROUTES: dict[str, Route] = {
    "simd_shuffle": lambda lane, k: k if k < 32 else None,
    "simd_broadcast": lambda lane, k: k if k < 32 else None,
    "simd_shuffle_down": lambda lane, k: lane + k if lane + k in range(32) else lane,
    "simd_shuffle_up": lambda lane, k: lane - k if lane - k in range(32) else lane,
    "simd_shuffle_xor": lambda lane, k: lane ^ k if k < 32 else None,
    "simd_shuffle_rotate_down": lambda lane, k: (lane + k) % 32,
    "simd_shuffle_rotate_up": lambda lane, k: (lane - k) % 32,
    "quad_shuffle": lambda lane, k: lane // 4 * 4 + k if k < 4 else None,
    "quad_broadcast": lambda lane, k: lane // 4 * 4 + k if k < 4 else None,
    "quad_shuffle_down": lambda lane, k: lane + k if lane % 4 + k in range(4) else lane,
    "quad_shuffle_up": lambda lane, k: lane - k if lane % 4 - k in range(4) else lane,
    "quad_shuffle_xor": lambda lane, k: lane // 4 * 4 + (lane % 4 ^ k) if k < 4 else None,
    "quad_shuffle_rotate_down": lambda lane, k: lane // 4 * 4 + (lane % 4 + k) % 4,
    "quad_shuffle_rotate_up": lambda lane, k: lane // 4 * 4 + (lane % 4 - k) % 4,
}
"""Operation -> from lane and argument to the lane that it reads, None for a number that no lane has."""

FILLS = ("simd_shuffle_and_fill_down", "simd_shuffle_and_fill_up", "quad_shuffle_and_fill_down")
FILLS = (*FILLS, "quad_shuffle_and_fill_up")
SUMS = [f"{kind}_{name}" for kind in ("simd", "quad") for name in ("sum", "product")]
SUMS += [
    f"{kind}_prefix_{how}_{name[5:]}"
    for kind in ("simd", "quad")
    for how in ("inclusive", "exclusive")
    for name in SUMS[:2]
]
WORDS: dict[str, Callable[[Sequence[int]], int]] = {
    **{f"{kind}_and": lambda v: int(np.bitwise_and.reduce(v)) for kind in ("simd", "quad")},
    **{f"{kind}_or": lambda v: int(np.bitwise_or.reduce(v)) for kind in ("simd", "quad")},
    **{f"{kind}_xor": lambda v: int(np.bitwise_xor.reduce(v)) for kind in ("simd", "quad")},
    **{f"{kind}_max": max for kind in ("simd", "quad")},
    **{f"{kind}_min": min for kind in ("simd", "quad")},
}
VOTES = {
    "uint(ulong(simd_ballot(odd)))": lambda mask, lane: mask & 0xAAAAAAAA,
    "simd_any(odd)": lambda mask, lane: mask & 0xAAAAAAAA != 0,
    "simd_all(odd)": lambda mask, lane: mask & 0x55555555 == 0,
    "uint(ulong(simd_active_threads_mask()))": lambda mask, lane: mask,
    "simd_is_first()": lambda mask, lane: mask & -mask == 1 << lane,
    "uint(ulong(quad_ballot(odd)))": lambda mask, lane: mask >> lane // 4 * 4 & 0b1010,
    "quad_any(odd)": lambda mask, lane: mask >> lane // 4 * 4 & 0b1010 != 0,
    "quad_all(odd)": lambda mask, lane: mask >> lane // 4 * 4 & 0b0101 == 0,
    "simd_broadcast_first(v)": lambda mask, lane: VALUES[(mask & -mask).bit_length() - 1],
    "quad_broadcast_first(v)": lambda mask, lane: next(
        VALUES[other] for other in range(lane // 4 * 4, 32) if mask >> other & 1
    ),
}  # fmt: skip
CALLS = [
    *(f"{name}(v, ushort(k))" for name in ROUTES),
    *(f"{name}(v, v + 5000u, ushort(k), ushort(width))" for name in FILLS),
    *(f"as_type<uint>({name}(f))" for name in SUMS),
    *(f"{name}(v * 2654435761u)" for name in WORDS),
    *(f"uint({call})" for call in VOTES),
]
BODY = "\n".join(
    [
        "const uint group = threadgroup_position_in_grid.x, lane = thread_index_in_simdgroup;",
        "const uint k = how[4 * group + 1], width = how[4 * group + 2], v = words[lane];",
        "const float f = floats[lane];",
        "const bool odd = lane & 1;",
        f"uint r = {UNTOUCHED};",
        "if ((how[4 * group + 3] >> lane) & 1u) {",
        "switch (how[4 * group]) {",
        *(f"case {number}: r = {call}; break;" for number, call in enumerate(CALLS)),
        "}",
        "}",
        "out[32 * group + lane] = r;",
    ]
)


class Ask(NamedTuple):
    """One simdgroup: an operation by its number, its argument, the width of its windows, and the lanes that ask."""

    call: int
    k: int = 0
    width: int = 32
    mask: int = WHOLE


@cache
def kernel() -> Callable[..., list[mx.array]]:
    return metal_kernel("lanes", ["how", "words", "floats"], ["out"], BODY)


def asked(asks: Sequence[Ask], floats: np.ndarray | None = None) -> np.ndarray:
    """What each lane of each simdgroup gets, as uint32 [asks, 32]."""
    given = np.zeros(32, np.float32) if floats is None else floats
    with use("host"):
        (out,) = kernel()(
            inputs=[mx.array(np.array(asks, np.uint32)), mx.array(np.array(VALUES, np.uint32)), mx.array(given)],
            output_shapes=[(len(asks), 32)],
            output_dtypes=[mx.uint32],
            grid=(32 * len(asks), 1, 1),
            threadgroup=(32, 1, 1),
        )
    return np.array(out)


def held(asks: Sequence[Ask], want: Callable[[Ask, int], int], floats: np.ndarray | None = None) -> None:
    """Each lane that asks gets what is wanted, and the others nothing."""
    got = asked(asks, floats)
    wrong = []
    for ask, row in zip(asks, got.tolist(), strict=True):
        there = [want(ask, lane) if ask.mask >> lane & 1 else UNTOUCHED for lane in range(32)]
        wrong += [(CALLS[ask.call], ask, lane, row[lane]) for lane in range(32) if row[lane] != there[lane]]
    assert wrong[:3] == []


def lanes(mask: int, lane: int, width: int = 32) -> list[int]:
    """The lanes of a window that take part."""
    base = lane // width * width
    return [other for other in range(base, base + width) if mask >> other & 1]


def test_every_route_leads_to_its_lane() -> None:
    routes = list(ROUTES.values())

    def want(ask: Ask, lane: int) -> int:
        origin = routes[ask.call](lane, ask.k)
        return VALUES[lane] if origin is None else VALUES[origin] if ask.mask >> origin & 1 else ABSENT

    ks = (*range(35), 63, 64, 65, 0x8000, 0xFFFF)
    held([Ask(call, k, 32, mask) for call in range(len(ROUTES)) for k in ks for mask in SETS], want)


def test_what_comes_from_beyond_a_window_is_the_filling() -> None:
    def want(ask: Ask, lane: int) -> int:
        base, at = lane // ask.width * ask.width, lane % ask.width
        window = [VALUES[base + other] if ask.mask >> base + other & 1 else ABSENT for other in range(ask.width)]
        filling = [value if value == ABSENT else value + 5000 for value in window]
        if FILLS[ask.call - len(ROUTES)].endswith("down"):
            return (window + filling)[at + ask.k]
        return (filling + window)[ask.width + at - ask.k]

    held(
        [
            Ask(len(ROUTES) + number, k, width, mask)
            for number, name in enumerate(FILLS)
            for width in (2, 4, 8, 16, 32)
            if width <= (4 if name.startswith("quad") else 32)
            for k in range(width + 1)
            for mask in SETS
        ],
        want,
    )


def joined(values: Sequence[np.float32 | None], operation: Callable[..., np.float32]) -> np.float32 | None:
    """The operation on those that are there."""
    there = [value for value in values if value is not None]
    return None if not there else there[0] if len(there) == 1 else operation(*there)


def distances(order: str, width: int) -> list[int]:
    """Of the steps of a butterfly."""
    rising = [1 << step for step in range(width.bit_length() - 1)]
    return rising if order == "ascending-butterfly" else rising[::-1]


def upto(row: list[np.float32 | None], order: str, operation: Callable[..., np.float32]) -> list[np.float32 | None]:
    """Of each lane, what it and those below it come to together."""
    if order == "sequential":
        sums = row[:1]
        for value in row[1:]:
            sums.append(joined([sums[-1], value], operation))
        return sums
    if order == "reverse-sequential":
        found = []
        for last in range(len(row)):
            total = row[last]
            for value in row[:last][::-1]:
                total = joined([total, value], operation)
            found.append(total)
        return found
    for distance in distances(order, len(row)):
        row = [
            joined([row[at], row[at - distance]], operation) if at >= distance else row[at] for at in range(len(row))
        ]
    return row


def whole(row: list[np.float32 | None], order: str, operation: Callable[..., np.float32]) -> np.float32 | None:
    """What all lanes come to: a fold, or a butterfly in which each lane joins its partner."""
    if "sequential" in order:
        return upto(row, order, operation)[-1]
    for distance in distances(order, len(row)):
        row = [joined([row[min(at, at ^ distance)], row[max(at, at ^ distance)]], operation) for at in range(len(row))]
    return row[0]


@pytest.mark.parametrize("order", SWITCHES["simd_sum"])
def test_sums_and_products_are_taken_in_their_order(order: str) -> None:
    floats = np.random.default_rng(23).uniform(0.5, 1.7, 32).astype(np.float32)
    begin = len(ROUTES) + len(FILLS)
    differ = {one: whole(list(floats), one, np.add) for one in SWITCHES["simd_sum"]}
    assert len({float(value) for value in differ.values() if value is not None}) == len(differ)

    def want(ask: Ask, lane: int) -> int:
        name = SUMS[ask.call - begin]
        operation = np.add if name.endswith("sum") else np.multiply
        width = 4 if name.startswith("quad") else 32
        base = lane // width * width
        row = [floats[other] if ask.mask >> other & 1 else None for other in range(base, base + width)]
        if "prefix" not in name:
            found = whole(row, order, operation)
        elif "inclusive" in name:
            found = upto(row, order, operation)[lane - base]
        else:
            below = upto(row, order, operation)[lane - base - 1] if lane > base else None
            found = below if below is not None else np.float32(operation is np.multiply)
        assert found is not None
        return int(np.float32(found).view(np.uint32))

    with switched(simd_sum=order):
        held([Ask(begin + number, 0, 32, mask) for number in range(len(SUMS)) for mask in SETS], want, floats)


def test_words_are_joined_over_the_lanes_that_take_part() -> None:
    begin = len(ROUTES) + len(FILLS) + len(SUMS)
    names = list(WORDS)

    def want(ask: Ask, lane: int) -> int:
        name = names[ask.call - begin]
        there = lanes(ask.mask, lane, 4 if name.startswith("quad") else 32)
        return WORDS[name]([VALUES[other] * 2654435761 % 2**32 for other in there])

    held([Ask(begin + number, 0, 32, mask) for number in range(len(names)) for mask in SETS], want)


def test_votes_count_the_lanes_that_take_part() -> None:
    begin = len(CALLS) - len(VOTES)
    rules = list(VOTES.values())
    asks = [Ask(begin + number, 0, 32, mask) for number in range(len(rules)) for mask in SETS]
    held(asks, lambda ask, lane: int(rules[ask.call - begin](ask.mask, lane)))


WHOLES = [
    *(f"Shuffle<beneath::{route}, uint>" for route in ("kDown", "kUp", "kXor", "kIndex", "kRotateDown", "kQuadIndex")),
    *(f"ShuffleAndFill<{way}, uint>" for way in ("true", "false")),
    *(f"Reduce<beneath::{operation}, uint, {width}>" for operation in ("Sum", "Max") for width in (32, 4)),
    *(f"Scan<beneath::Sum, uint, {inclusive}, {width}>" for inclusive in ("true", "false") for width in (32, 4)),
    "Vote",
    "First<uint>",
    "QuadFirst<uint>",
]
BOXES = "\n".join(
    [
        "beneath::Lane box[34];",
        "for (uint n = 0; n < 34; n++) {",
        "box[n].value[0] = box[n].value[1] = box[n].fill[0] = box[n].fill[1] = 0x5a5a00ul + n;",
        "box[n].result[0] = box[n].result[1] = 0xa5a500ul + n;",
        "box[n].argument = 1u | 32u << 16, box[n].site = 7;",
        "}",
        "uint changed = 0;",
        *(f"if (i == {n}) beneath::{whole}::complete(box + 1, 0xffffffffu);" for n, whole in enumerate(WHOLES)),
        "for (uint n = 0; n < 34; n += 33) {",
        "for (uint k = 0; k < 2; k++) {",
        "changed += box[n].value[k] != 0x5a5a00ul + n;",
        "changed += box[n].fill[k] != 0x5a5a00ul + n;",
        "changed += box[n].result[k] != 0xa5a500ul + n;",
        "}",
        "changed += box[n].argument != (1u | 32u << 16);",
        "changed += box[n].site != 7;",
        "}",
        "out[i] = changed;",
    ]
)


@pytest.mark.parametrize("order", SWITCHES["simd_sum"])
def test_nothing_beside_the_lanes_is_touched(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel's own text cannot name what the runtime is made of.
    monkeypatch.setattr(host, "translate", lambda text: translate(text).replace("beneath::", "assay::"))
    kernel = metal_kernel("boxes", [], ["out"], f"uint i = thread_position_in_grid.x;\n{BOXES}")
    with use("host"), switched(simd_sum=order):
        (out,) = kernel(
            inputs=[],
            output_shapes=[(len(WHOLES),)],
            output_dtypes=[mx.uint32],
            grid=(len(WHOLES), 1, 1),
            threadgroup=(1, 1, 1),
        )
    assert dict(zip(WHOLES, out.tolist(), strict=True)) == dict.fromkeys(WHOLES, 0)
