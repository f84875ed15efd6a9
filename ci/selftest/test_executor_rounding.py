"""Roundings and the NaN rule of the executor's numbers, one kernel each, at the places where one bit decides."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import metal_kernel, use

TIE = 0x8000
"""Of the 16 bits of an f32 that a bfloat lacks: half of the bfloat's last place."""


def words(body: str, inputs: Sequence[np.ndarray[Any, Any]], columns: int, size: int) -> list[list[int]]:
    """Rows of uint32 that a body leaves in `out` for each i; the k-th input is a, b, c."""
    kernel = metal_kernel(
        "rounding",
        list("abc"[: len(inputs)]),
        ["out"],
        f"uint i = thread_position_in_grid.x;\nif (i >= {size}u) return;\n{body}",
    )
    with use("host"):
        (out,) = kernel(
            inputs=[mx.array(one) for one in inputs],
            output_shapes=[(size, columns)],
            output_dtypes=[mx.uint32],
            grid=(size, 1, 1),
            threadgroup=(min(size, 256), 1, 1),
        )
    rows: list[list[int]] = out.tolist()
    return rows


def test_a_float_becomes_the_nearest_bfloat_and_a_nan_stays_one() -> None:
    uppers = (0x0080, 0x3F80, 0x3F81, 0x4000, 0x7F7E, 0x7F7F, 0xBF80, 0xBF81, 0xFF7F)
    lowers = (0, 1, TIE - 1, TIE, TIE + 1, 0xFFFF)
    numbers = [upper << 16 | lower for upper in uppers for lower in lowers]
    # Above the tie the next bfloat, at the tie the even one; the bits of a magnitude count up through infinity.
    want = [(bits >> 16) + (bits & 0xFFFF > TIE or (bits & 0xFFFF == TIE and bits >> 16 & 1)) for bits in numbers]
    others = {
        0x00000000: 0x0000, 0x80000000: 0x8000, 0x7F800000: 0x7F80, 0xFF800000: 0xFF80,
        # A NaN keeps its sign and the upper part of its payload, and is quiet (IEEE 754-2019, 6.2.3).
        0x7FC00000: 0x7FC0, 0xFFC00000: 0xFFC0, 0x7F800001: 0x7FC0, 0xFF800001: 0xFFC0, 0x7FBFFFFF: 0x7FFF,
        0x7FFFFFFF: 0x7FFF, 0xFFFFFFFF: 0xFFFF, 0x7FD50000: 0x7FD5, 0xFF958000: 0xFFD5,
    }  # fmt: skip
    given = np.array([*numbers, *others], np.uint32)
    got = words("out[i] = uint(as_type<ushort>(bfloat(as_type<float>(a[i]))));", [given], 1, given.size)
    told = [(f"{bits:#x}", f"{row[0]:#x}") for bits, row in zip(given.tolist(), got, strict=True)]
    assert told == [
        (f"{bits:#x}", f"{one:#x}") for bits, one in zip(given.tolist(), [*want, *others.values()], strict=True)
    ]


INTEGERS = {"long": 64, "ulong": 64, "int": 32, "uint": 32, "short": 16, "ushort": 16}


def nearest(value: int) -> int:
    """The encoding of the bfloat nearest to an integer, by exact fractions."""
    if value == 0:
        return 0
    exponent = abs(value).bit_length() - 8
    steps = round(Fraction(abs(value)) / Fraction(2) ** exponent)
    if steps == 256:
        steps, exponent = 128, exponent + 1
    return (value < 0) << 15 | (exponent + 7 + 127) << 7 | (steps & 127)


def test_an_integer_becomes_the_nearest_bfloat_in_one_rounding() -> None:
    near = [sign * ((1 << e) + d) for e in range(65) for d in (-1, 0, 1) for sign in (1, -1)]
    # 257 is a tie that goes down to the even, 259 one that goes up; with more bits, to either side of each by one.
    near += [(tie << shift) + d for tie in (257, 259) for shift in range(17, 55) for d in (-1, 0, 1)]
    # What f32 would make a tie of: a bit far below the 24 that it holds.
    near += [(257 << 40) + (1 << e) for e in range(40)] + [-((257 << 40) + (1 << e)) for e in range(40)]
    near += [(1 << 24) + 1, (1 << 25) + 1, (1 << 25) + 3, 0xFFFFFF, 0xFFFFFF80, 0xFFFFFF7F]
    values = sorted({value % 2**64 for value in near})
    body = "\n".join(
        f"out[6 * i + {n}] = uint(as_type<ushort>(bfloat({kind}(a[i]))));" for n, kind in enumerate(INTEGERS)
    )
    got = words(body, [np.array(values, np.uint64)], 6, len(values))
    for column, (kind, size) in enumerate(INTEGERS.items()):
        low = [value % 2**size for value in values]
        given = low if kind.startswith("u") else [value - 2**size * (value >> size - 1) for value in low]
        wrong = [(kind, one, row[column]) for one, row in zip(given, got, strict=True) if row[column] != nearest(one)]
        assert wrong[:3] == []


FLOATS = {
    "quiet NaN": 0x7FC00000, "-NaN": 0xFFC00000, "signaling NaN": 0x7F800001, "inf": 0x7F800000, "-inf": 0xFF800000,
    "1": 0x3F800000, "after 1": 0x3F800001, "-1": 0xBF800000, "after -1": 0xBF800001, "largest": 0x7F7FFFFF,
    "normal": 0x00800000, "-normal": 0x80800000, "0": 0x00000000, "-0": 0x80000000,
}  # fmt: skip


def larger(x: int, y: int, sign: int) -> int:
    """The larger of two f32 by their bits, the smaller with a sign of -1; NaN loses, and the first of equals."""
    floats = np.array([x, y], np.uint32).view(np.float32)
    if np.isnan(floats[0]) or np.isnan(floats[1]):
        return y if np.isnan(floats[0]) else x
    return x if floats[0] * sign > floats[1] * sign else y


@pytest.mark.parametrize("name", ["max", "min"])
def test_a_number_wins_over_nan(name: str) -> None:
    pairs = [(x, y) for x, y in product(FLOATS.values(), repeat=2) if x != y or x == FLOATS["1"]]
    given = [np.array(column, np.uint32) for column in zip(*pairs, strict=True)]
    body = (
        "float x = as_type<float>(a[i]), y = as_type<float>(b[i]);\n"
        f"out[3 * i] = as_type<uint>(metal::f{name}(x, y));\n"
        f"out[3 * i + 1] = as_type<uint>(metal::{name}(x, y));\n"
        f"out[3 * i + 2] = as_type<uint>(metal::{name}3(x, x, y));"
    )
    got = words(body, given, 3, len(pairs))
    for (x, y), row in zip(pairs, got, strict=True):
        want = larger(x, y, 1 if name == "max" else -1)
        both = all(np.isnan(np.array([x, y], np.uint32).view(np.float32)))
        for told in row:
            if both:
                assert np.isnan(np.uint32(told).view(np.float32)), (x, y)
            else:
                assert told == want, (f"{x:#x}", f"{y:#x}", f"{told:#x}")


def test_what_is_nan_and_what_sign_a_number_has() -> None:
    given = np.array([*FLOATS.values(), 0x40490FDB, 0xC0490FDB], np.uint32)
    body = (
        "float x = as_type<float>(a[i]);\n"
        "out[3 * i] = uint(isnan(x));\n"
        "out[3 * i + 1] = as_type<uint>(metal::sign(x));\n"
        "out[3 * i + 2] = as_type<uint>(metal::saturate(x));"
    )
    one = 0x3F800000
    for bits, row in zip(given.tolist(), words(body, [given], 3, given.size), strict=True):
        nan, zero, negative = bits & 0x7FFFFFFF > 0x7F800000, bits & 0x7FFFFFFF == 0, bits >> 31
        sign = 0 if nan else bits if zero else one | negative << 31
        held = 0 if nan or negative or zero else min(bits, one)
        assert row == [nan, sign, held], f"{bits:#x}"
