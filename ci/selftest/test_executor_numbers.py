"""Numbers on the host executor: expectations come from NumPy, ml_dtypes, exact fractions, or reasoning in a comment."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.fidelity import switched

BFLOAT = np.dtype(ml_dtypes.bfloat16)
FLOATS = {"float": np.dtype(np.float32), "half": np.dtype(np.float16), "bfloat": BFLOAT}
NAN_BITS = {"float": 0x7FC00000, "half": 0x7E00, "bfloat": 0x7FC0}


def bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize])


def run(
    source: str, inputs: Sequence[np.ndarray[Any, Any]], dtype: Any, size: int = 0, header: str = ""
) -> np.ndarray[Any, Any]:
    """Runs a body over one axis; the k-th input is a, b, c, and the result has the outputs' bits."""
    n = size or inputs[0].size
    kernel = metal_kernel(
        "numbers", list("abcd"[: len(inputs)]), ["out"], f"uint i = thread_position_in_grid.x;\n{source}", header
    )
    dtype = np.dtype(dtype)
    mlx_dtype = mx.bfloat16 if dtype == BFLOAT else getattr(mx, dtype.name)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[mx.array(x) for x in inputs],
            output_shapes=[(n,)],
            output_dtypes=[mlx_dtype],
            grid=(n, 1, 1),
            threadgroup=(min(n, 256), 1, 1),
        )
    words = np.array(out.view({1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}[dtype.itemsize]))
    return words.view(dtype)


def same(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> None:
    """Equal encodings; any NaN for a NaN."""
    nan = np.isnan(want)
    assert np.array_equal(np.isnan(got), nan)
    assert np.array_equal(bits(got)[~nan], bits(want)[~nan])


def every_16_bits(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return np.arange(65536, dtype=np.uint16).view(dtype)


def around_midpoints(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Every finite value of a 16-bit type in f32, the midpoint to the next, and the midpoint's two neighbours."""
    finite = every_16_bits(dtype).astype(np.float32)
    finite = np.unique(finite[np.isfinite(finite)])
    middle = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)
    return np.concatenate(
        [finite, middle, np.nextafter(middle, np.float32(np.inf)), np.nextafter(middle, np.float32(-np.inf))]
    )


@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_sixteen_bits_widen(kind: str) -> None:
    x = every_16_bits(FLOATS[kind])
    with np.errstate(invalid="ignore"):
        same(run("out[i] = float(a[i]);", [x], np.float32), x.astype(np.float32))


@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_float_narrows_to_nearest_even(kind: str) -> None:
    edges = np.array([0x7F7FFFFF, 0xFF7FFFFF, 0x7F800001, 0x7FFFFFFF, 0xFF800001, 0x80000000], np.uint32).view(
        np.float32
    )
    x = np.concatenate([around_midpoints(FLOATS[kind]), edges])
    # f32 denormals count as zero in arithmetic, and a conversion may keep or flush them: only normal numbers are held.
    x = x[(np.abs(x) >= np.float32(2.0**-126)) | (x == 0) | np.isnan(x)]
    with np.errstate(all="ignore"):
        same(run(f"out[i] = {kind}(a[i]);", [x], FLOATS[kind]), x.astype(FLOATS[kind]))


def test_bfloat_and_half_convert_explicitly() -> None:
    x = every_16_bits(FLOATS["half"])
    with np.errstate(invalid="ignore"):
        same(run("out[i] = bfloat(a[i]);", [x], BFLOAT), x.astype(np.float32).astype(BFLOAT))


@pytest.mark.parametrize("kind", ["int", "uint", "long", "ulong", "short", "uchar"])
def test_integers_round_once_to_bfloat(kind: str) -> None:
    dtype = np.dtype({"int": "i4", "uint": "u4", "long": "i8", "ulong": "u8", "short": "i2", "uchar": "u1"}[kind])
    info = np.iinfo(dtype)
    near = [s * ((1 << e) + d) for e in range(65) for d in (-1, 0, 1) for s in (1, -1)]
    # 2**24 + 2**16 + 1: f32 drops the last bit, after which bfloat sees a tie that is none.
    near += [257, 259, 2**24 + 2**16 + 1, 2**40 + 2**32 + 1, info.min, info.max]
    x = np.array(sorted({v for v in near if info.min <= v <= info.max}), dtype)

    def nearest(value: int) -> float:
        if value == 0:
            return 0.0
        exponent = abs(value).bit_length() - 8
        return float(round(Fraction(value) / Fraction(2) ** exponent) * Fraction(2) ** exponent)

    want = np.array([nearest(int(v)) for v in x], np.float32).astype(BFLOAT)
    same(run("out[i] = bfloat(a[i]);", [x], BFLOAT), want)


@pytest.mark.parametrize("kind", ["half", "bfloat", "float"])
@pytest.mark.parametrize("operation", ["+", "-", "*", "/"])
def test_each_operation_rounds(kind: str, operation: str) -> None:
    dtype = FLOATS[kind]
    rng = np.random.default_rng(7)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    x, y = (rng.integers(0, np.iinfo(unsigned).max, 20000, dtype=unsigned, endpoint=True).view(dtype) for _ in "xy")
    wide = np.float64 if kind == "float" else np.float32
    with np.errstate(all="ignore"):
        p, q = x.astype(wide), y.astype(wide)
        want = {"+": p + q, "-": p - q, "*": p * q, "/": p / q}[operation].astype(dtype)
        # Where f32 takes part, denormal operands and results are zero: such places have their own test.
        small = np.float64(2.0**-126)
        exact = [np.abs(v.astype(np.float64)) for v in (x, y, want)]
        normal = np.logical_and.reduce([(v == 0) | (v >= small) | np.isnan(v) for v in exact]) | (kind == "half")
    got = run(f"out[i] = a[i] {operation} b[i];", [x, y], dtype)
    assert normal.sum() > 15000
    same(got[normal], want[normal])


def test_f32_denormals_are_zero() -> None:
    tiny = np.array([1, 0x7FFFFF, 0x80000001, 0x807FFFFF], np.uint32).view(np.float32)
    one, two = np.full(4, 1, np.float32), np.full(4, 2.0**-100, np.float32)
    assert np.array_equal(bits(run("out[i] = a[i] * 2.0f;", [tiny], np.float32)) << 1, np.zeros(4, np.uint32))
    assert np.array_equal(run("out[i] = a[i] + b[i];", [tiny, one], np.float32), one)
    assert np.array_equal(bits(run("out[i] = a[i] * a[i];", [two], np.float32)), np.zeros(4, np.uint32))
    # A copy is no arithmetic.
    assert np.array_equal(bits(run("out[i] = a[i];", [tiny], np.float32)), bits(tiny))


def test_f16_denormals_are_kept() -> None:
    tiny = np.arange(1, 1024, dtype=np.uint16).view(np.float16)
    same(run("out[i] = a[i] + a[i];", [tiny], np.float16), tiny + tiny)
    same(run("out[i] = half(float(a[i]));", [tiny], np.float16), tiny)


def test_the_callers_floating_point_mode_comes_back() -> None:
    run("out[i] = a[i] * 2.0f;", [np.full(4, 1e-40, np.float32)], np.float32)
    assert np.float32(1e-40) * np.float32(0.5) != 0


# (1 + 2**-12)**2 = 1 + 2**-11 + 2**-24, which f32 cannot hold: two roundings lose the last term, a fused one keeps it.
FUSED = [np.full(8, 1 + 2.0**-12, np.float32), np.full(8, -(1 + 2.0**-11), np.float32)]


def test_contraction_within_an_expression() -> None:
    assert np.all(run("out[i] = a[i] * a[i] + b[i];", FUSED, np.float32) == np.float32(2.0**-24))


def test_no_contraction_across_statements() -> None:
    assert np.all(run("float p = a[i] * a[i]; out[i] = p + b[i];", FUSED, np.float32) == 0)


@pytest.mark.parametrize("where", ["file", "block"])
def test_the_pragma_stops_contraction(where: str) -> None:
    pragma = "#pragma METAL fp contract(off)\n"
    body = "out[i] = a[i] * a[i] + b[i];"
    got = (
        run(f"{{\n{pragma}{body} }}", FUSED, np.float32)
        if where == "block"
        else run(body, FUSED, np.float32, 0, pragma)
    )
    assert np.all(got == 0)


def exact_half_fma(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 12, -26)
    while magnitude >= Fraction(2) ** (exponent + 11):
        exponent += 1
    while exponent > -24 and magnitude < Fraction(2) ** (exponent + 10):
        exponent -= 1
    exponent = max(exponent, -24)
    rounded = round(magnitude / Fraction(2) ** exponent) * Fraction(2) ** exponent
    value = float("inf") if rounded > 65504 else float(rounded)
    return value if exact > 0 else -value


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = fma(a[i], b[i], c[i]);",
        "out[i] = a[i] * b[i] + c[i];",
        "half4 v = half4(1, 2, a[i], 3); half4 w = v * half4(b[i]) + half4(half3(c[i]), 0); out[i] = w.z;",
    ],
)
def test_half_fma_rounds_once(body: str) -> None:
    rng = np.random.default_rng(11)
    a, b, c = (
        rng.integers(0, 0x7C00, 4000, dtype=np.uint16) | (rng.integers(0, 2, 4000, dtype=np.uint16) << 15)
        for _ in "abc"
    )
    # Near ties: a product of about one, and an addend far below its last bit.
    a[:1500] = 0x4200 + rng.integers(0, 8, 1500)
    b[:1500] = 0x3555 + rng.integers(0, 4, 1500)
    c[:1500] = rng.integers(0, 64, 1500)
    x, y, z = (v.view(np.float16) for v in (a, b, c))
    # fma(3, 683/2048, 2**-24) = 1 + 2**-11 + 2**-24: just above the tie, so 0x3c01.
    x[0], y[0], z[0] = 3, 683 / 2048, 2.0**-24
    want = np.array([exact_half_fma(float(p), float(q), float(r)) for p, q, r in zip(x, y, z, strict=True)]).astype(
        np.float16
    )
    assert bits(want)[0] == 0x3C01
    got = run(body, [x, y, z], np.float16)
    zero = want == 0
    assert np.array_equal(bits(got)[~zero], bits(want)[~zero])
    assert np.all(got[zero] == 0)


TWO_ROUNDINGS = (
    "bfloat p = a[i] * b[i]; out[i] = p + c[i];",
    "auto p = a[i] * b[i]; out[i] = p + c[i];",
    "out[i] = c[i]; out[i] += bfloat(float(a[i] * b[i]));",
    "{\n#pragma METAL fp contract(off)\nout[i] = a[i] * b[i] + c[i]; }",
)
ONE_ROUNDING = (
    "out[i] = a[i] * b[i] + c[i];",
    "out[i] = c[i] + a[i] * b[i];",
    "out[i] = c[i]; out[i] += a[i] * b[i];",
    "out[i] = c[i] - -a[i] * b[i];",
    "out[i] = fma(a[i], b[i], c[i]);",
)


@pytest.mark.parametrize(("body", "fused"), [*((t, False) for t in TWO_ROUNDINGS), *((t, True) for t in ONE_ROUNDING)])
def test_bfloat_rounds_each_operation_or_an_expression(body: str, fused: bool) -> None:
    rng = np.random.default_rng(5)
    x, y, z = (rng.standard_normal(4096).astype(BFLOAT) for _ in "xyz")
    twice = (x * y).astype(BFLOAT) + z
    # The product of two bfloats is exact in f32, and f64 holds its sum with a third of these sizes.
    once = (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(np.float32).astype(BFLOAT)
    assert np.any(bits(once) != bits(twice)), "the inputs tell two roundings from one"
    got = run(body, [x, y, z], BFLOAT)
    same(got, once if fused else twice)
    with switched(contraction="off"):
        same(run(body, [x, y, z], BFLOAT), once if "fma" in body else twice)


@pytest.mark.parametrize("product", ["a[i] * b[i]", "b[i] * a[i]"])
def test_a_float_and_a_bfloat_multiply_as_floats(product: str) -> None:
    # (1 + 2**-17) * (1 + 2**-7) = 1 + 2**-7 + 2**-17 + 2**-24: the last bit is a tie that a rounding takes to the even.
    x, y = np.full(8, 1 + 2.0**-17, np.float32), np.full(8, 1 + 2.0**-7, np.float32).astype(BFLOAT)
    z = np.full(8, -(1 + 2.0**-7), np.float32)
    fused = run(f"out[i] = {product} + c[i];", [x, y, z], np.float32)
    assert np.all(fused == np.float32(2.0**-17 + 2.0**-24))
    with switched(contraction="off"):
        assert np.all(run(f"out[i] = {product} + c[i];", [x, y, z], np.float32) == np.float32(2.0**-17))


@pytest.mark.parametrize("kind", ["int", "uint", "char", "uchar", "short", "ushort", "long", "ulong"])
@pytest.mark.parametrize("source", ["float", "half", "bfloat", "float4", "literal"])
def test_a_float_beyond_an_integers_range_converts_to_its_end(kind: str, source: str) -> None:
    x = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 3e9, -3e9, 255.5, 1e20, -200.0], np.float32)
    size = {"char": 1, "short": 2, "int": 4, "long": 8}[kind.removeprefix("u")]
    dtype = np.dtype(f"{'u' if kind[0] == 'u' else 'i'}{size}")
    info = np.iinfo(dtype)
    with np.errstate(over="ignore"):
        narrow = x.astype(FLOATS["half" if source == "half" else "bfloat" if source == "bfloat" else "float"])
    wide = narrow.astype(np.float64)
    ends = int(info.min), int(info.max)
    want = [
        0 if np.isnan(v) else ends[int(v > 0)] if np.isinf(v) else min(max(int(np.trunc(v)), ends[0]), ends[1])
        for v in wide
    ]
    body = {"float4": f"out[i] = {kind}4(float4(a[i])).z;"}.get(source, f"out[i] = {kind}(a[i]);")
    if source == "literal":
        body, narrow, want = f"out[i] = {kind}(i > 20 ? 1.0f : 1e20f);", x, [int(info.max)] * x.size
    assert run(body, [narrow], dtype).tolist() == want


def test_bfloat_sums_stop_growing() -> None:
    # From 256 on the spacing is 2, and 256 + 1 is a tie that goes to the even 256.
    body = "bfloat sum = 0; for (int k = 0; k < 300; k++) sum += a[i]; out[i] = sum;"
    assert run(body, [np.ones(8, BFLOAT)], BFLOAT).astype(np.float32).tolist() == [256] * 8


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["max", "min", "fmax", "fmin"])
def test_nan_loses(kind: str, name: str) -> None:
    nan = np.array([NAN_BITS[kind]], f"u{FLOATS[kind].itemsize}").view(FLOATS[kind])[0]
    inf = np.array(np.inf, np.float32).astype(FLOATS[kind])
    one = np.array(1, np.float32).astype(FLOATS[kind])
    rows = [(nan, one, one), (one, nan, one), (nan, inf, inf), (-inf, nan, -inf), (nan, nan, nan)]
    rows += [(one, inf, inf if "max" in name else one), (-inf, one, one if "max" in name else -inf)]
    x, y, want = (np.array([row[k] for row in rows], FLOATS[kind]) for k in range(3))
    same(run(f"out[i] = metal::{name}(a[i], b[i]);", [x, y], FLOATS[kind]), want)


def test_nan_is_seen() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1.0, -0.0, 0.0, -np.nan, 3e38], np.float32)
    body = "out[i] = isnan(a[i]) | (a[i] != a[i]) << 1 | isinf(a[i]) << 2 | isfinite(a[i]) << 3 | signbit(a[i]) << 4;"
    want = [
        int(np.isnan(v)) * 3 | int(np.isinf(v)) << 2 | int(np.isfinite(v)) << 3 | int(np.signbit(v)) << 4 for v in x
    ]
    assert run(body, [x], np.uint32).tolist() == want


def test_literals_are_float() -> None:
    # 0.1 as a double would make 0.1 * 3 round elsewhere; sizeof tells the type outright.
    got = run(
        "out[i] = i == 0 ? sizeof(1.5) : i == 1 ? sizeof(1e3) : i == 2 ? sizeof(.5) : i == 3 ? sizeof(0x1p3) : 0;",
        [],
        np.uint32,
        4,
    )
    assert got.tolist() == [4, 4, 4, 4]
    want = np.float32(0.1) * np.float32(3)
    assert run("out[i] = 0.1 * a[i];", [np.full(8, 3, np.float32)], np.float32)[0] == want


def test_literals_of_half_and_bfloat() -> None:
    # 1.00048828125 = 1 + 2**-11 is a tie of half (to even: 1), 1.01171875 = 1 + 3 * 2**-8 one of bfloat (to 1 + 2**-6).
    assert run("out[i] = 1.00048828125h;", [], np.float16, 4)[0] == 1
    assert run("out[i] = 1.01171875bf;", [], BFLOAT, 4).astype(np.float32)[0] == 1 + 2.0**-6


def test_integers_wrap() -> None:
    x = np.array([2**31 - 1, -(2**31), -1, 5], np.int32)
    assert run("out[i] = as_type<int>(as_type<uint>(a[i]) + 1u);", [x], np.int32).tolist() == [
        -(2**31),
        -(2**31) + 1,
        0,
        6,
    ]
    # State 127 of the 1MAD code: 127 * 34038481 + 76625530 modulo 2**32.
    states = np.array([0, 126, 127, 65535], np.uint32)
    assert run("out[i] = a[i] * 34038481u + 76625530u;", [states], np.uint32).tolist() == [
        0x0491367A, 0x0433D958, 0x063B3C29, 0x655AD3A9,
    ]  # fmt: skip


def test_char_is_signed() -> None:
    assert run(
        "char c = char(a[i]); out[i] = int(c);", [np.array([255, 128, 127, 1], np.uint8)], np.int32
    ).tolist() == [-1, -128, 127, 1]


@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_as_type_keeps_every_pattern(kind: str) -> None:
    x = np.arange(65536, dtype=np.uint16)
    got = run(f"{kind} h = as_type<{kind}>(a[i]); out[i] = as_type<ushort>(h);", [x], np.uint16)
    assert np.array_equal(got, x)


def test_division_is_exact() -> None:
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(4096).astype(np.float32) for _ in "xy")
    same(run("out[i] = precise::divide(a[i], b[i]);", [x, y], np.float32), x / y)
    same(run("out[i] = metal::sqrt(metal::abs(a[i]));", [x], np.float32), np.sqrt(np.abs(x)))


def test_fast_tanh_shows_its_overflow() -> None:
    # exp(2x) + 1 above 2**126 has a reciprocal that flushes to zero; beyond 44.36 it is inf over inf.
    x = np.array([1.0, 30.0, 44.0, 44.3, 45.0, 1000.0], np.float32)
    got = run("out[i] = fast::tanh(a[i]);", [x], np.float32)
    assert got[1] == 1
    assert got[3] == 0
    assert np.isnan(got[4:]).all()
    assert np.all(run("out[i] = precise::tanh(a[i]);", [x], np.float32)[1:] == 1)


def test_exp_of_minus_infinity() -> None:
    assert bits(run("out[i] = metal::exp(a[i]);", [np.full(8, -np.inf, np.float32)], np.float32)).tolist() == [0] * 8
