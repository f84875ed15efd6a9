"""What the checker says of lanes that are asked and are not there, and that it says nothing of who does not ask."""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Finding, Kind, check

SIMD = ("shuffle", "shuffle_down", "shuffle_up", "shuffle_xor", "shuffle_rotate_down", "shuffle_rotate_up")
FILLS = (
    "simd_shuffle_and_fill_down(v, v, ushort(9), ushort(16))",
    "simd_shuffle_and_fill_up(v, v, ushort(9), ushort(16))",
)
WINDOWS = (0, 1, 3, 24, 33, 64, 256, 8192, 65535)
HEAD = "uint i = thread_index_in_threadgroup, v = a[i];\nout[i] = v;\n"


def found(lines: Sequence[str]) -> list[tuple[Kind, int]]:
    """Kinds and the places of the lines, from 0, that they name."""
    kernel = metal_kernel("asked", ["a"], ["out"], HEAD + "\n".join(lines))

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(32, dtype=mx.uint32)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(32,)],
            output_dtypes=[mx.uint32],
        )

    with use("host"):
        findings: list[Finding] = check(call)[1]
    first = HEAD.count("\n") + 1
    return sorted((one.kind, one.accesses[0].place.line - first if one.accesses else -1) for one in findings)


def test_lanes_that_are_there_are_asked_without_a_word() -> None:
    # Beyond the edge of a shift a lane has its own value, and so it has at the widest shift there is.
    lines = [f"out[i] += simd_{name}(v, {k});" for name in SIMD for k in (0, 1, 31)]
    lines += [f"out[i] += quad_{name}(v, {k});" for name in SIMD for k in (0, 1, 3)]
    lines += [f"out[i] += {call};" for call in FILLS]
    assert found(lines) == []


def test_a_number_that_no_lane_has_is_a_lane_that_is_not_there() -> None:
    lines = [f"out[i] += simd_{name}(v, 32);" for name in ("shuffle", "shuffle_xor")]
    lines += [f"out[i] += quad_{name}(v, 4);" for name in ("shuffle", "shuffle_xor")]
    told = found(lines)
    assert [place for kind, place in told if kind is Kind.INACTIVE_LANE] == [0, 1, 2, 3]
    assert {kind for kind, _ in told} <= {Kind.INACTIVE_LANE, Kind.DEPENDS_ON_GARBAGE}


# Odd lanes ask lanes that are there; what even lanes asked for before, or would be given, concerns nobody.
ODD = ("simd_shuffle_xor(v, {})", "simd_shuffle(v, i ^ {})", "quad_shuffle_xor(v, {})", "simd_shuffle_rotate_up(v, {})")
ODD = (
    *ODD,
    "simd_shuffle_and_fill_down(v, v, ushort({}), ushort(4))",
    "simd_shuffle_and_fill_up(v, v, ushort({}), ushort(4))",
)


def test_a_lane_that_takes_no_part_asks_nobody() -> None:
    lines = []
    for call in ODD:
        # What every lane asked for last: an even lane would ask an even one, which takes no part either.
        lines += ["out[i] += simd_shuffle_and_fill_down(v, v, ushort(2), ushort(4));"]
        lines += ["if (i & 1) {", f"out[i] += {call.format(2)};", "}"]
        lines += ["if (i & 1) {", f"out[i] += {call.format(1)};", "}"]
    told = found(lines)
    assert [place for kind, place in told if kind is Kind.PARTIAL_SIMD] == [
        7 * number + place for number in range(len(ODD)) for place in (2, 5)
    ]
    assert [place for kind, place in told if kind is Kind.INACTIVE_LANE] == [7 * n + 5 for n in range(len(ODD))]


def test_a_window_that_metal_leaves_open_gives_the_value_of_no_lane() -> None:
    calls = [f"simd_shuffle_and_fill_{way}(v, 7u, 1, {window})" for way in ("down", "up") for window in WINDOWS]
    calls += [f"quad_shuffle_and_fill_{way}(v, 7u, 1, {window})" for way in ("down", "up") for window in (0, 8)]
    lines = ["uint i = thread_index_in_threadgroup, v = a[i];"]
    # Each lane has its own value from the shuffle before, which stays where nothing is put in its place.
    lines += [f"v = simd_shuffle(v, i); out[{k} * 32 + i] = {call};" for k, call in enumerate(calls)]
    kernel = metal_kernel("windows", ["a"], ["out"], "\n".join(lines))
    with use("host"):
        (out,) = kernel(
            inputs=[mx.arange(32, dtype=mx.uint32)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(32 * len(calls),)],
            output_dtypes=[mx.uint32],
        )
        assert set(out.tolist()) == {0xDEADBEEF}
