"""The high-precision softcap: correct rounding at every step, and the rule that bounds the others."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import pytest

from mlx_assay.oracles import mlx_lm_softcap, numpy_reference, precise_softcap, stock_mlx, torch_reference
from mlx_assay.oracles.fault import encodings
from mlx_assay.oracles.rounding import denormal, ranks, round_once, unranked

BFLOAT16, FLOAT16, FLOAT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
DTYPES = (BFLOAT16, FLOAT16, FLOAT32)
HALVES = (BFLOAT16, FLOAT16)
CAPS = (30, 50, 1 / 3, 0.1, -30)

named = pytest.mark.parametrize("dtype", DTYPES, ids=str)
halves = pytest.mark.parametrize("dtype", HALVES, ids=str)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The panel asks oracles so: signalling NaN and overflow are inputs here, no accidents."""
    with np.errstate(all="ignore"):
        yield


def every(dtype: np.dtype[Any]) -> np.ndarray:
    """All 65,536 encodings."""
    return np.arange(2**16, dtype=np.uint16).view(dtype)


def spread(dtype: np.dtype[Any], count: int, seed: int) -> np.ndarray:
    """Encodings of finite numbers, drawn evenly."""
    bits = np.random.Philox(key=seed).random_raw(2 * count).astype(np.dtype(f"u{dtype.itemsize}"))
    values = bits.view(dtype)
    return values[np.isfinite(values)][:count]


def nearest(value: Fraction, dtype: np.dtype[Any]) -> float:
    """The finite number of a dtype nearest to an exact one, ties to even: by exact comparison with its neighbours."""
    guess = int(ranks(np.asarray(float(value), np.float64).astype(np.float32).astype(dtype)))
    around = [unranked(np.asarray(guess + step), dtype) for step in (-2, -1, 0, 1, 2)]
    numbers = [(abs(Fraction(float(near)) - value), int(encodings(near)) & 1, float(near)) for near in around]
    return min(numbers)[2]


@halves
def test_rounding_is_done_once(dtype: np.dtype[Any]) -> None:
    values = every(dtype)[: 0x7F00 if dtype == BFLOAT16 else 0x7B00]
    above = unranked(ranks(values) + 1, dtype)
    middle = (values.astype(np.float64) + above.astype(np.float64)) / 2
    even = np.where(encodings(values) & 1, above, values)
    for sign in (1.0, -1.0):
        signed = dtype.type(sign)
        assert np.array_equal(encodings(round_once(sign * middle, dtype)), encodings(signed * even))
        below_tie, above_tie = np.nextafter(middle, 0.0), np.nextafter(middle, np.inf)
        assert np.array_equal(encodings(round_once(sign * below_tie, dtype)), encodings(signed * values))
        assert np.array_equal(encodings(round_once(sign * above_tie, dtype)), encodings(signed * above))


@halves
def test_rounding_keeps_every_encoding(dtype: np.dtype[Any]) -> None:
    values = every(dtype)
    again = round_once(values.astype(np.float64), dtype)
    assert np.array_equal(again != again, values != values)
    numbers = values == values
    assert np.array_equal(encodings(again)[numbers], encodings(values)[numbers])


@named
def test_ranks_are_undone_and_in_order(dtype: np.dtype[Any]) -> None:
    values = np.sort(spread(dtype, 4000, 1).astype(np.float64))
    found = ranks(values.astype(dtype))
    assert (np.diff(found) >= 0).all()
    assert np.array_equal(unranked(found, dtype).astype(np.float64), values)
    assert np.array_equal(
        denormal(values.astype(dtype)), (values != 0) & (abs(values) < np.float64(ml_dtypes.finfo(dtype).tiny))
    )


@named
def test_quotient_and_product_are_correctly_rounded(dtype: np.dtype[Any]) -> None:
    caps = [cap for cap in spread(dtype, 400, 2).astype(np.float64) if 1e-30 < abs(cap) < 1e30]
    finite = 0
    for x, cap in zip(spread(dtype, 400, 3), caps, strict=False):
        exact = Fraction(float(x)) / Fraction(cap)
        if abs(exact) < Fraction(float(ml_dtypes.finfo(dtype).max)):
            finite += 1
            assert float(precise_softcap.quotient(np.asarray(x), cap)) == nearest(exact, dtype)
        bent = np.asarray(np.tanh(np.float64(x))).astype(dtype)
        got = float(precise_softcap.product(bent, cap))
        assert got == nearest(Fraction(float(bent)) * Fraction(cap), dtype)
    assert finite > 100


@named
def test_float64_tanh_stays_far_inside_the_margin(dtype: np.dtype[Any]) -> None:
    values = np.abs(spread(dtype, 3000, 4).astype(np.float64))
    values = values[(values > 2.0**-20) & (values < 20)]
    assert len(values) > 100
    for value in values[:600]:
        with mpmath.workprec(120):
            true = mpmath.tanh(mpmath.mpf(float(value)))
            assert abs(mpmath.mpf(float(np.tanh(value))) / true - 1) < precise_softcap.MARGIN / 64


@halves
def test_tanh_is_correctly_rounded_wherever_it_bends(dtype: np.dtype[Any]) -> None:
    values = every(dtype)
    positive = values[(values.astype(np.float32) > 2.0**-12) & (values.astype(np.float32) < 10)]
    got = precise_softcap.tanh(positive)
    above, below = unranked(ranks(got) + 1, dtype), unranked(ranks(got) - 1, dtype)
    for value, answer, upper, lower in zip(positive, got, above, below, strict=True):
        with mpmath.workprec(100):
            true = mpmath.tanh(mpmath.mpf(float(value)))
            assert (float(answer) + float(lower)) / 2 < true < (float(answer) + float(upper)) / 2
    assert np.array_equal(encodings(precise_softcap.tanh(-positive)), encodings(-got))
    small = values[np.abs(values.astype(np.float32)) <= 2.0**-12]
    assert np.array_equal(encodings(precise_softcap.tanh(small)), encodings(small))


@named
def test_mpmath_decides_as_float64_does(dtype: np.dtype[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    low, high = (int(ranks(np.array(bound, dtype))) for bound in (2.0**-9, 9.0))
    values = unranked(np.linspace(low, high, 1500).astype(np.int64), dtype)
    sure = precise_softcap.tanh(values)
    asked: list[float] = []
    decide = precise_softcap._decide

    def counted(value: float, below: Any, above: Any) -> Any:
        asked.append(value)
        return decide(value, below, above)

    monkeypatch.setattr(precise_softcap, "MARGIN", 2.0 ** -(13 if dtype != FLOAT32 else 28))
    monkeypatch.setattr(precise_softcap, "_decide", counted)
    assert np.array_equal(encodings(precise_softcap.tanh(values)), encodings(sure))
    assert len(asked) > 15


@pytest.mark.parametrize(
    ("dtype", "cap", "x", "want"),
    [
        (FLOAT32, 0, [1.0, -2.0, np.inf, 0.0, -0.0, np.nan], [0.0, -0.0, 0.0, np.nan, np.nan, np.nan]),
        (FLOAT32, -0.0, [1.0, -2.0, 0.0], [0.0, -0.0, np.nan]),
        (FLOAT16, 1e-40, [1.0, -2.0, 0.0], [0.0, -0.0, np.nan]),
        (FLOAT16, 65520.0, [1.0, np.inf], [np.nan, np.nan]),
        (FLOAT16, 65519.0, [np.inf, -np.inf], [65504.0, -65504.0]),
        (BFLOAT16, np.inf, [1.0, 0.0, np.inf], [np.nan, np.nan, np.nan]),
        (BFLOAT16, np.nan, [1.0, 0.0], [np.nan, np.nan]),
        (BFLOAT16, 2.0**-133, [1.0, -1.0, 0.0], [2.0**-133, -(2.0**-133), 0.0]),
        (FLOAT32, 2.0**-149, [1.0, 0.0, -np.inf], [2.0**-149, 0.0, -(2.0**-149)]),
        (FLOAT32, 3e38, [np.inf, -np.inf], [3e38, -3e38]),
        (FLOAT32, -30, [np.inf, -np.inf, 0.0], [30.0, -30.0, 0.0]),
    ],
)
def test_special_caps(dtype: np.dtype[Any], cap: float, x: list[float], want: list[float]) -> None:
    given, answer = np.array(x, dtype), np.array(want, dtype)
    got = precise_softcap.logit_softcap(given, cap)
    assert np.array_equal(got != got, answer != answer)
    numbers = answer == answer
    assert np.array_equal(encodings(got)[numbers], encodings(answer)[numbers])


@pytest.mark.parametrize("cap", [1 + 2.0**-8 + 2.0**-30, 1 + 2.0**-11 + 2.0**-30, 16777217, 65520.0, 1e39, 5e-324, 0.1])
@named
def test_a_cap_is_rounded_as_mlx_does(dtype: np.dtype[Any], cap: float) -> None:
    one = stock_mlx.to_mlx(np.ones(1, dtype))
    rounded = stock_mlx.to_numpy(one * cap)
    assert np.array_equal(encodings(rounded)[0], encodings(precise_softcap.scalar(cap, dtype)))
    assert np.array_equal(encodings(rounded)[0], encodings(numpy_reference.scalar(cap, dtype)))


def outside(got: np.ndarray, x: np.ndarray, cap: float, flushed: bool = False) -> int:
    """How many results of numbers lie outside the interval, NaN for a number included."""
    low, high = precise_softcap.interval(x, cap, flushed)
    expected = precise_softcap.logit_softcap(x, cap)
    numbers = expected == expected
    found = ranks(got)
    return int((numbers & ~((got == got) & (low <= found) & (found <= high))).sum())


SOUND = (stock_mlx, numpy_reference, torch_reference, precise_softcap)


@pytest.mark.parametrize("cap", CAPS)
@halves
def test_sound_softcaps_are_inside_at_every_encoding(dtype: np.dtype[Any], cap: float) -> None:
    x = every(dtype)
    for oracle in SOUND:
        assert outside(oracle.logit_softcap(x, cap), x, cap) == 0
    for form in (mlx_lm_softcap.gemma4, mlx_lm_softcap.gemma3n, mlx_lm_softcap.gemma2):
        assert outside(form(x, cap), x, cap) == 0


@pytest.mark.parametrize("cap", CAPS)
def test_sound_softcaps_are_inside_in_float32(cap: float) -> None:
    words = np.random.Philox(key=5).random_raw(2**15)
    near = (words.astype(np.int64) % 2**24 - 2**23).astype(np.float32) * np.float32(2.0**-15)
    x = np.concatenate([words.astype(np.uint32).view(np.float32), near])
    for oracle in SOUND:
        assert outside(oracle.logit_softcap(x, cap), x, cap) == 0


@named
def test_unsound_softcaps_are_outside(dtype: np.dtype[Any]) -> None:
    x = np.linspace(-3000, 3000, 4001).astype(dtype)
    sound = precise_softcap.logit_softcap(x, 30)
    assert outside(sound, x, 30) == 0
    assert outside(precise_softcap.logit_softcap(sound, 30), x, 30) > 3000
    assert outside(np.zeros_like(x), x, 30) >= 3900
    assert outside(x, x, 30) > 3000
    with np.errstate(all="ignore"):
        powers = np.exp(2 * (x.astype(np.float32) / 30))
        ratio = ((powers - 1) / (powers + 1) * 30).astype(dtype)
    assert outside(ratio, x, 30) > 900
    just = unranked(np.sign(ranks(sound)) * (np.abs(ranks(sound)) - 1), dtype)
    assert outside(just, x, 30) > 1500, "from 16 caps on the result is the cap itself"


def test_six_units_of_float32_tanh_are_too_many() -> None:
    x = np.linspace(-100, 100, 2001).astype(np.float32)
    bent = precise_softcap.tanh(precise_softcap.quotient(x, 30))
    for off, admitted in ((5, True), (8, False)):
        wrong = precise_softcap.product(unranked(ranks(bent) - np.sign(ranks(bent)) * off, FLOAT32), 30)
        assert (outside(wrong, x, 30) == 0) is admitted


@pytest.mark.parametrize(
    ("x", "cap", "admitted"),
    [(2.0**-130, 1.0, True), (2.0**-120, 2.0**10, True), (2.0**-100, 30.0, False), (1, 30, False)],
)
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT32], ids=str)
def test_a_zero_is_admitted_for_denormals_only_where_the_device_flushes(
    dtype: np.dtype[Any], sign: int, x: float, cap: float, admitted: bool
) -> None:
    given = np.array([sign * x], dtype)
    zero = np.copysign(np.zeros(1, dtype), given)
    assert outside(zero, given, cap) == 1
    assert (outside(zero, given, cap, flushed=True) == 0) is admitted
    assert outside(precise_softcap.logit_softcap(given, cap), given, cap, flushed=True) == 0


def test_the_distance_covers_the_interval_and_no_more() -> None:
    x = np.linspace(-100, 100, 501).astype(np.float32)
    low, high = precise_softcap.interval(x, 30, False)
    expected = precise_softcap.logit_softcap(x, 30)
    allowed = precise_softcap.distance(low, high, expected)
    assert np.array_equal(allowed, np.maximum(high - ranks(expected), ranks(expected) - low))
    beyond = unranked(high + 1, FLOAT32)
    assert (precise_softcap.distance(low, high, beyond) == -1).all(), "an oracle outside admits nothing"
    assert int(allowed[250]) == 0, "a zero stays a zero"
    assert 0 < int(allowed.max()) <= 11
    nothing = precise_softcap.distance(low, high, np.full_like(x, np.nan))
    assert not nothing.any()
