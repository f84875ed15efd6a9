"""The arithmetic of Apple's compiled kernels on this machine: rounding, NaN, denormals, conversions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fmax", [2, 1, 1, NAN, INF, 5]), ("fmin", [1, 1, 1, NAN, -INF, 5])],
)
def test_of_minima_and_maxima_nan_loses(forge: Any, name: str, expected: list[float]) -> None:
    a, b = np.float32([1, NAN, 1, NAN, INF, 5]), np.float32([2, 1, NAN, NAN, -INF, NAN])
    for kind, dtype in (("f", np.float32), ("h", np.float16)):
        kernel = forge.kernel(forge.call(f"air.{name}.{'f32' if kind == 'f' else 'f16'}", kind * 2, kind))
        got = forge.run(kernel, a.astype(dtype), b.astype(dtype), output=kind)
        np.testing.assert_array_equal(got, np.array(expected, dtype))


def rounded_to_half(value: Fraction) -> int:
    """The encoding of the half nearest to a positive or zero value, ties to even, by integers alone."""
    exponent = -24
    while value / Fraction(2) ** exponent >= 2048:
        exponent += 1
    scaled = value / Fraction(2) ** exponent
    whole, rest = divmod(scaled, 1)
    mantissa = int(whole) + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1))
    return min((exponent + 24) * 1024 + mantissa, 0x7C00)


@pytest.mark.parametrize("name", ["air.fma.f16", "llvm.fmuladd.f16"])
def test_a_fused_half_operation_is_rounded_once(forge: Any, name: str) -> None:
    bits = np.random.default_rng(5).integers(0, 0x7800, (3, 4000)).astype(np.uint16)
    bits[:, 0] = [0x4200, 0x3556, 0x0001]
    a, b, c = bits.view(np.float16)
    got = forge.run(forge.kernel(forge.call(name, "hhh", "h")), a, b, c, output="h").view(np.uint16)
    exact = [Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)) for x, y, z in zip(a, b, c, strict=True)]
    assert got.tolist() == [rounded_to_half(v) for v in exact]


def test_a_half_product_is_not_rounded_through_float(forge: Any) -> None:
    # 3 * 683/2048 is the midpoint of 1 and the next half; 2**-24 above it, f32 would round back onto the midpoint.
    inputs = np.float16([3]), np.float16([683 / 2048]), np.float16([2**-24])
    assert forge.run(forge.kernel(forge.call("air.fma.f16", "hhh", "h")), *inputs, output="h").tolist() == [1 + 2**-10]


def test_contraction_is_a_switch(forge: Any) -> None:
    text = forge.call("llvm.fmuladd.f32", "fff", "f")
    x = np.float32([1 + 2**-12])
    c = np.float32([-(1 + 2**-11)])
    assert forge.run(forge.kernel(text), x, x, c, output="f").tolist() == [2.0**-24]
    assert forge.run(forge.kernel(text, contraction=False), x, x, c, output="f").tolist() == [0.0]


def test_float_flushes_denormals_and_half_keeps_them(forge: Any) -> None:
    single = forge.elementwise("%r = fmul float %x0, %x1", "ff", "f", "")
    a, b = np.float32([1e-20, 1e-39, -1e-20]), np.float32([1e-20, 1, 1e-20])
    assert forge.run(forge.kernel(single), a, b, output="f").view(np.uint32).tolist() == [0, 0, 0x80000000]
    double = forge.elementwise("%r = fmul half %x0, %x1", "hh", "h", "")
    assert forge.run(forge.kernel(double), np.float16([2**-20]), np.float16([0.25]), output="h").tolist() == [2.0**-22]


def test_a_float_beyond_an_integers_range_converts_to_its_end(forge: Any) -> None:
    x = np.float32([1.9, -1.9, NAN, INF, -INF, 3e9, -3e9, 255.5])
    signed = forge.run(forge.kernel(forge.call("air.convert.s.i32.f.f32", "f", "i")), x, output="i")
    assert signed.tolist() == [1, -1, 0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 255]
    unsigned = forge.run(forge.kernel(forge.call("air.convert.u.i32.f.f32", "f", "I")), x, output="I")
    assert unsigned.tolist() == [1, 0, 0, 2**32 - 1, 0, 3_000_000_000, 0, 255]


def test_every_half_and_bfloat_converts_as_numpy_and_ml_dtypes_do(forge: Any) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    h, b = bits.view(np.float16), bits.view(ml_dtypes.bfloat16)
    with np.errstate(all="ignore"):
        for name, source, kinds, expected in (
            ("air.convert.f.f32.f.f16", h, "hf", h.astype(np.float32)),
            ("air.convert.f.f32.f.bf16", b, "bf", b.astype(np.float32)),
            ("air.convert.f.bf16.f.f16", h, "hb", h.astype(np.float32).astype(ml_dtypes.bfloat16)),
            ("air.convert.f.f16.f.bf16", b, "bh", b.astype(np.float32).astype(np.float16)),
        ):
            got = forge.run(forge.kernel(forge.call(name, kinds[0], kinds[1])), source, output=kinds[1])
            nan = np.isnan(expected.astype(np.float32))
            word = np.uint32 if kinds[1] == "f" else np.uint16
            assert np.array_equal(np.isnan(got.astype(np.float32)), nan)
            if kinds == "bf":
                nan |= (bits & 0x7F80) == 0  # a denormal bfloat is a denormal float
            assert np.array_equal(got.view(word)[~nan], expected.view(word)[~nan]), name


def test_floats_round_to_bfloat_as_ml_dtypes_does(forge: Any) -> None:
    high = np.arange(0x80, 0x7F80, dtype=np.uint32) << 16
    x = np.concatenate([high | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)]).view(np.float32)
    x = np.concatenate([x, -x])
    got = forge.run(forge.kernel(forge.call("air.convert.f.bf16.f.f32", "f", "b")), x, output="b", threadgroup=1024)
    assert np.array_equal(got.view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16))


def test_integers_round_once_on_their_way_to_bfloat(forge: Any) -> None:
    # 2**24 + 2**16 + 1 lies above the midpoint of two bfloats; by way of a float it would lie on it and round down.
    x = np.int32([2**24 + 2**16 + 1, -(2**24 + 2**16 + 1), 257, 259, -7])
    got = forge.run(forge.kernel(forge.call("air.convert.f.bf16.s.i32", "i", "b")), x, output="b")
    assert got.astype(np.float64).tolist() == [2**24 + 2**17, -(2**24 + 2**17), 256, 260, -7]


def test_clamp_sends_nan_to_the_lower_end(forge: Any) -> None:
    x, low, high = np.float32([NAN, -3, 3, 1, INF]), np.full(5, -1, np.float32), np.full(5, 2, np.float32)
    got = forge.run(forge.kernel(forge.call("air.clamp.f32", "fff", "f")), x, low, high, output="f")
    assert got.tolist() == [-1, -1, 2, 1, 2]


def test_what_is_known_at_compile_time_flushes_too(forge: Any) -> None:
    text = forge.elementwise("%r = fmul float 0x3A00000000000000, 0x3E00000000000000", "f", "f", "")  # 2**-95 * 2**-31
    assert forge.run(forge.kernel(text), np.zeros(1, np.float32), output="f").tolist() == [2.0**-126]
    text = text.replace("0x3E00000000000000", "0x3D00000000000000")  # 2**-47
    assert forge.run(forge.kernel(text), np.zeros(1, np.float32), output="f").tolist() == [0.0]


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("air.rint.f32", [0.5, 1.5, -2.5, 2.4], [0, 2, -2, 2]),
        ("air.round.f32", [0.5, 1.5, -2.5, 2.4], [1, 2, -3, 2]),
        ("air.trunc.f32", [0.9, -0.9, 1.5, INF], [0, 0, 1, INF]),
        ("air.floor.f32", [0.9, -0.1, -1.5, INF], [0, -1, -2, INF]),
        ("air.ceil.f32", [0.1, -0.9, 1.5, -INF], [1, 0, 2, -INF]),
        ("air.fabs.f32", [-0.0, -INF, 2, -3], [0, INF, 2, 3]),
        ("air.sqrt.f32", [4, 2, 0.25, INF], [2, np.float32(2) ** np.float32(0.5), 0.5, INF]),
    ],
)
def test_rounding_functions(forge: Any, name: str, x: list[float], expected: list[float]) -> None:
    assert forge.run(forge.kernel(forge.call(name, "f", "f")), np.float32(x), output="f").tolist() == expected


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("air.min.s.i32", ([3, -4, 2**31 - 1], [-3, 5, -(2**31)]), [-3, -4, -(2**31)]),
        ("air.max.u.i32", ([3, -4, 0], [-3, 5, 1]), [-3, -4, 1]),
        ("air.abs.s.i32", ([-5, 5, -(2**31)],), [5, 5, -(2**31)]),
        ("air.clamp.s.i32", ([-9, 9, 1], [-3, -3, -3], [4, 4, 4]), [-3, 4, 1]),
        ("air.popcount.i32", ([-1, 0, 0x0F0F],), [32, 0, 8]),
        ("air.add_sat.s.i32", ([2**31 - 1, -(2**31), 7], [1, -1, 1]), [2**31 - 1, -(2**31), 8]),
    ],
)
def test_integer_functions(forge: Any, name: str, inputs: Any, expected: list[int]) -> None:
    arrays = [np.int32(values) for values in inputs]
    kernel = forge.kernel(forge.call(name, "i" * len(arrays), "i"))
    assert forge.run(kernel, *arrays, output="i").tolist() == expected


def test_leading_zeros_of_zero_are_all_of_them(forge: Any) -> None:
    declared = "declare i32 @air.clz.i32(i32, i1)"
    text = forge.elementwise("%r = call i32 @air.clz.i32(i32 %x0, i1 false)", "i", "i", declared)
    assert forge.run(forge.kernel(text), np.int32([0, 1, -1]), output="i").tolist() == [32, 31, 0]
