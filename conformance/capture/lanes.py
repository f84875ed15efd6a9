"""Questions about lanes: shuffles past the edge, and from lanes that took another branch or have returned."""

from __future__ import annotations

from collections.abc import Callable

from mlx_assay.conformance.capture.question import Question, Words

LANES = 32
HALF = 16
_VALUES = tuple(100 + lane for lane in range(LANES))
_STATES = {"inactive": "are in another branch", "exited": "have returned"}
_GARBAGE = 0xDEADBEEF
"""What the host executor gives for a lane that is not there."""


def _edge(name: str, call: str, source: Callable[[int], int]) -> Question:
    """`source` is the lane that is asked for, which may be none of the simdgroup's."""

    def outside(replaced: Callable[[int, int], int]) -> Words:
        return tuple(
            _VALUES[asked] if 0 <= (asked := source(lane)) < LANES else replaced(lane, asked) for lane in range(LANES)
        )

    return Question(
        f"edge.{name}",
        f"{call} of 100 + lane",
        "u32",
        _VALUES,
        LANES,
        f"uint v = a[lane]; uint t = {call}; r[lane] = t;",
        {
            "the own value": outside(lambda lane, asked: _VALUES[lane]),
            "wraps around": outside(lambda lane, asked: _VALUES[asked % LANES]),
            "zero": outside(lambda lane, asked: 0),
            "the last lane's": outside(lambda lane, asked: _VALUES[LANES - 1]),
            "the first lane's": outside(lambda lane, asked: _VALUES[0]),
        },
        "the own value",
        group="lanes",
    )


_CALLS: tuple[tuple[str, str, Callable[[int], int]], ...] = (
    ("shuffle-down", "simd_shuffle_down(v, ushort(5))", lambda lane: lane + 5),
    ("shuffle-up", "simd_shuffle_up(v, ushort(5))", lambda lane: lane - 5),
    ("shuffle-xor", "simd_shuffle_xor(v, ushort(37))", lambda lane: lane ^ 37),
    ("shuffle-index", "simd_shuffle(v, ushort(lane + 5))", lambda lane: lane + 5),
)
_AWAY: tuple[tuple[str, str, Callable[[int], int]], ...] = (
    ("shuffle-down", "simd_shuffle_down(v, ushort(8))", lambda lane: lane + 8),
    ("shuffle-xor", "simd_shuffle_xor(v, ushort(24))", lambda lane: lane ^ 24),
    ("shuffle-index", "simd_shuffle(v, ushort(lane + 8))", lambda lane: lane + 8),
)


def _away(state: str, name: str, call: str, source: Callable[[int], int]) -> Question:
    """Lanes 16 to 31 do not take part; each of the others asks a lane, some of them one that does not."""

    def replaced(other: Callable[[int], int]) -> Words:
        return tuple(_VALUES[source(lane)] if source(lane) < HALF else other(lane) for lane in range(HALF))

    body = f"uint t = {call}; r[lane] = t;"
    return Question(
        f"{state}.{name}",
        f"{call} where lanes 16 to 31 {_STATES[state]}",
        "u32",
        _VALUES,
        HALF,
        f"uint v = a[lane]; {body}" if state == "exited" else f"uint v = a[lane]; if (lane < {HALF}u) {{ {body} }}",
        {
            "their value": replaced(lambda lane: _VALUES[source(lane)]),
            "the own value": replaced(lambda lane: _VALUES[lane]),
            "zero": replaced(lambda lane: 0),
            "the host executor's mark": replaced(lambda lane: _GARBAGE),
        },
        "the host executor's mark",
        group="exited" if state == "exited" else "lanes",
    )


def _sum(state: str) -> Question:
    """Integers, so that the order has no part."""
    half, whole = sum(_VALUES[:HALF]), sum(_VALUES)
    body = "uint t = simd_sum(v); r[lane] = t;"
    return Question(
        f"{state}.simd-sum",
        f"simd_sum of 100 + lane where lanes 16 to 31 {_STATES[state]}",
        "u32",
        _VALUES,
        HALF,
        f"uint v = a[lane]; {body}" if state == "exited" else f"uint v = a[lane]; if (lane < {HALF}u) {{ {body} }}",
        {"without them": (half,) * HALF, "with them": (whole,) * HALF},
        "without them",
        group="exited" if state == "exited" else "lanes",
    )


QUESTIONS = (
    *(_edge(*call) for call in _CALLS),
    *(question for state in _STATES for question in (*(_away(state, *call) for call in _AWAY), _sum(state))),
)
