"""Addresses under the checker: whether an access lies in an array, whole and aligned, and what becomes of it."""

from __future__ import annotations

from typing import NamedTuple

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Kind, check

HEADER = "struct Big { uint v[64]; };\nstruct Odd { uchar v[4]; };\n"
BEGIN = """uint i = thread_index_in_threadgroup;
threadgroup float s[64]; threadgroup float t[8];
s[i] = x[i]; if (i < 8) t[i] = 0;
y[i] = x[i]; z[i] = ushort(i);
if (i < 60) w[i] = 1;
threadgroup_barrier(mem_flags::mem_threadgroup);
"""
OUT, ASKEW, INPUT = Kind.OUT_OF_BOUNDS, Kind.MISALIGNED, Kind.WRITE_TO_INPUT


class Step(NamedTuple):
    """What one thread does, and what has to be found there: kind, array and index, or nothing."""

    text: str
    kind: Kind | None = None
    array: str = ""
    index: int | None = None


# x is float[64] and an input, y float[64], z ushort[64] and w float[64] are outputs, s and t threadgroup arrays of 64
# and 8 floats.
STEPS = (
    Step("k = x[0];"),
    Step("k = x[63];"),
    Step("k = x[64];", OUT, "x", 64),
    Step("k = x[int(i) - 4];", OUT, "x", -1),
    Step("k = x[1u << 20];", OUT, "x", 1 << 20),
    Step("k = y[63];"),
    Step("k = y[64];", OUT, "y", 64),
    Step("y[64] = 1;", OUT, "y", 64),
    Step("y[int(i) - 10] = 1;", OUT, "y", -2),
    Step("k = s[63];"),
    Step("k = s[64];", OUT, "s", 64),
    Step("k = t[7];"),
    Step("k = t[8];", OUT, "t", 8),
    Step("t[int(i) - 14] = 1;", OUT, "t", -1),
    # Half inside: four bytes of eight, one of two, the last byte of an array.
    Step("k = packed_float2(*(const device packed_float2*)(x + 62)).y;"),
    Step("k = packed_float2(*(const device packed_float2*)(x + 63)).y;", OUT, "x", 63),
    Step("*(device packed_float2*)(w + 62) = packed_float2(5, 6);"),
    Step("*(device packed_float2*)(w + 61) = packed_float2(5, 6);"),
    Step("*(device packed_float2*)(w + 60) = packed_float2(5, 6);"),
    Step("k = *((const device uchar*)x + 255);"),
    Step("k = *((const device uchar*)x + 256);", OUT, "x", 64),
    Step("z[63] = 1;"),
    Step("z[64] = 1;", OUT, "z", 64),
    # Alignment is that of the type, wherever the array begins.
    Step("k = *(const device ushort*)((const device uchar*)x + 2);"),
    Step("k = *(const device ushort*)((const device uchar*)x + 3);", ASKEW, "x", 0),
    Step("k = *(const device uint*)((const device uchar*)x + 6);", ASKEW, "x", 1),
    Step("k = (*(const device float2*)(x + 2)).x;"),
    Step("k = (*(const device float2*)(x + 3)).x;", ASKEW, "x", 3),
    Step("k = (*(const device Odd*)((const device uchar*)x + 1)).v[1];"),
    # An input keeps what it holds, and a read of it afterwards shows that.
    Step("((device float*)x)[5] = 99;", INPUT, "x", 5),
    Step("((device float*)x)[64] = 99;", OUT, "x", 64),
    # As much as the checker has for what nobody owns, and it is no part of an array.
    Step("Big b = *(const device Big*)x; k = b.v[63];"),
    Step("Big b = *(const device Big*)(x + 1); k = b.v[0] == 3u;", OUT, "x", 1),
    Step("Big b = *(const device Big*)y; k = b.v[63];"),
    Step("*(device Big*)(y + 32) = *(const device Big*)x;", OUT, "y", 32),
    # Beyond all arrays, and where none is.
    Step("k = s[534773760u];", OUT, "", None),
    Step("k = *(const device float*)ulong(4096);", OUT, "", None),
)
TEXT = BEGIN + "\n".join(
    f"if (i == {n}) {{ float k = 0; {step.text} if (k == 12345) y[i] = 0; }}" for n, step in enumerate(STEPS)
)


@pytest.fixture(scope="module")
def result() -> tuple[list[list[float]], list[tuple[Kind, str, int | None, int]]]:
    """The outputs, and kind, array, index and line of each finding that has a line."""
    kernel = metal_kernel("addresses", ["x"], ["y", "z", "w"], TEXT, header=HEADER)

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(64).astype(mx.float32)],
            grid=(64, 1, 1),
            threadgroup=(64, 1, 1),
            output_shapes=[(64,), (64,), (64,)],
            output_dtypes=[mx.float32, mx.uint16, mx.float32],
        )

    with use("host"):
        outputs, findings = check(call, schedules=["in-order"])
    told = [(one.kind, one.array, one.index, one.place.line if one.place else 0) for one in findings]
    return [out.tolist() for out in outputs], told


FIRST = BEGIN.count("\n") + 1


@pytest.mark.parametrize("number", range(len(STEPS)), ids=[step.text for step in STEPS])
def test_an_access_is_judged_by_where_it_lies(
    number: int, result: tuple[list[list[float]], list[tuple[Kind, str, int | None, int]]]
) -> None:
    step = STEPS[number]
    found = [one[:3] for one in result[1] if one[3] == FIRST + number and one[0] in (OUT, ASKEW, INPUT)]
    assert found == ([] if step.kind is None else [(step.kind, step.array, step.index)])


def test_what_lies_outside_changes_nothing(
    result: tuple[list[list[float]], list[tuple[Kind, str, int | None, int]]],
) -> None:
    (y, z, w), findings = result
    assert y == [float(n) for n in range(64)]
    assert z == [*range(63), 1]
    assert w[:60] == [1.0] * 60
    assert w[60:] == [5.0, 6.0, 6.0, 6.0]
    # All of w was written, the last two elements by writes of eight bytes.
    assert [one for one in findings if one[0] in (Kind.UNWRITTEN, Kind.UNINITIALISED)] == []


def test_the_part_inside_of_a_write_that_goes_beyond_counts_as_written() -> None:
    body = "uint i = thread_index_in_threadgroup;\nif (i < 62) y[i] = 1;\n"
    body += "if (i == 62) *(device Four*)(y + 62) = *(const device Four*)x;"
    kernel = metal_kernel("beyond", ["x"], ["y"], body, header="struct Four { float v[4]; };\n")

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.zeros(64)],
            grid=(64, 1, 1),
            threadgroup=(64, 1, 1),
            output_shapes=[(64,)],
            output_dtypes=[mx.float32],
        )

    with use("host"):
        findings = check(call)[1]
    # The part inside is lost, and differs with what was there.
    told = [(one.kind, one.array, one.index) for one in findings]
    assert told == [(OUT, "y", 62), (Kind.DEPENDS_ON_GARBAGE, "y", 62)]
