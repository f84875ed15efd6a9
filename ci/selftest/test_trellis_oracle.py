"""The trellis oracles: arithmetic against fractions, layouts against integers, planted faults that are named."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.oracles import fused, host_lut, trellis_bound, trellis_decode, trellis_layout, trellis_row
from mlx_assay.oracles.fault import OracleFault
from mlx_assay.oracles.trellis_layout import Packed

Array = np.ndarray
F32 = np.dtype(np.float32)
DTYPES = (F32, np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def rounded(value: Fraction, negative_zero: bool) -> np.float32:
    """A fraction to float32, to nearest even, by integers alone."""
    if value == 0:
        return np.float32(-0.0 if negative_zero else 0.0)
    size = abs(value)
    exponent = max(-149, size.numerator.bit_length() - size.denominator.bit_length() - 25)
    while size / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    whole, rest = divmod(size / Fraction(2) ** exponent, 1)
    whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1)
    return np.float32(float(whole) * 2.0**exponent * (-1 if value < 0 else 1))


def drawn(seed: int, count: int) -> tuple[Array, Array, Array]:
    """Factors, and an addend that lies near a tie of their product: where two roundings go wrong."""
    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((2, count)) * np.exp2(rng.integers(-40, 40, (2, count)))).astype(F32)
    near = -(a.astype(np.float64) * b) * np.exp2(rng.integers(-30, 30, count)) * rng.choice([1, 1 + 2**-12, -1], count)
    return a, b, near.astype(F32)


def test_fma_is_rounded_once() -> None:
    columns = [*drawn(1, 1500)]
    small = np.tile(np.arange(1, 9) * 2.0**-18, 8)
    columns[0][:64] = 2.0**-24 * (1 + small)
    columns[1][:64] = np.repeat([1.0, -1.0], 32) * (1 - small)
    columns[2][:64] = np.tile([1 + 2.0**-23, -1 - 2.0**-23], 32)
    columns[0][64:128] *= np.float32(2.0**-70)
    columns[1][64:128] = np.float32(2.0**-60)
    columns[2][64:128] = np.float32(2.0**-149) * np.arange(64, dtype=F32)
    a, b, c = columns
    exact = [Fraction(float(p)) * Fraction(float(q)) + Fraction(float(r)) for p, q, r in zip(a, b, c, strict=True)]
    want = np.array([rounded(value, False) for value in exact], F32)
    got = fused.fma(a, b, c)
    assert got.tobytes() == want.tobytes()
    twice = (a.astype(np.float64) * b + c).astype(F32)
    assert (twice != want).sum() > 5, "the cases must tell one rounding from two"


def test_flushing_changes_only_denormals() -> None:
    a, b, c = drawn(2, 1000)
    assert fused.fma(a, b, c, True).tobytes() == fused.flushed(fused.fma(a, b, c)).tobytes()
    tiny = np.array([2.0**-127, -(2.0**-127), 2.0**-126, np.nan, np.inf, -0.0], F32)
    want = np.array([0.0, -0.0, 2.0**-126, np.nan, np.inf, -0.0], F32)
    assert fused.flushed(tiny).tobytes() == want.tobytes()


def test_an_unknown_order_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"ascending-butterfly.*but got 'pairwise'"):
        fused.simd_sum(np.zeros((32, 1), F32), "pairwise")
    with pytest.raises(ValueError, match="Expected 32 lanes but got 16"):
        fused.simd_sum(np.zeros((16, 1), F32), "sequential")


def test_orders_agree_where_sums_are_exact_and_differ_elsewhere() -> None:
    rng = np.random.default_rng(3)
    whole = rng.integers(-1000, 1000, (32, 50)).astype(F32)
    assert {fused.simd_sum(whole, order).tobytes() for order in fused.ORDERS} == {whole.sum(0).tobytes()}
    wide = rng.standard_normal((32, 500)).astype(F32)
    assert len({fused.simd_sum(wide, order).tobytes() for order in fused.ORDERS}) == 4


def test_the_reciprocal_has_the_published_bits() -> None:
    assert int(host_lut.RECIPROCAL.view(np.uint32)) == 0x3BDDB447
    assert Fraction(float(host_lut.DIVISOR)) == Fraction("147.800537109375")


def test_published_facts_of_the_codebook() -> None:
    y = host_lut.sums(12)
    assert (int(y.min()), int(y.max()), len(np.unique(y)), int((y == 0).sum())) == (-448, 454, 713, 9)
    assert y[:8].tolist() == [-185, -124, -63, -2, 59, -135, -74, -13]
    apart = host_lut.exact(12).view(np.int32) - host_lut.unrefined(12).view(np.int32)
    assert (int((apart != 0).sum()), int(np.abs(apart).max())) == (1550, 1)
    exact = np.array([rounded(Fraction(int(v)) / Fraction("147.800537109375"), False) for v in y], F32)
    assert host_lut.exact(12).tobytes() == exact.tobytes()


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("L", [8, 9, 10, 11, 12, 16])
def test_windows_are_those_of_one_integer(k: int, L: int) -> None:
    words = np.random.default_rng(k * L).integers(0, 2**32, (3, 2 * 8 * k), dtype=np.uint64).astype(np.uint32)
    found = trellis_layout.states(words, k, L, 256)
    assert found.tobytes() == trellis_layout.whole_states(words, k, L, 256).tobytes()
    assert found[2, 256:].tolist() == trellis_layout.block_states(words[2, 8 * k :], k, L, 256)


def test_interleaved_codes_are_the_same_weights() -> None:
    words = np.random.default_rng(5).integers(0, 2**32, (5, 4 * 24), dtype=np.uint64).astype(np.uint32)
    pairs = np.stack([words[:, :48], words[:, 48:]])
    scales = np.full(5, 0.5, F32)
    plain = trellis_decode.trellis_decode(Packed(words, 3, 12), scales)
    assert trellis_decode.trellis_decode(Packed(pairs, 3, 12, 256, True), scales).tobytes() == plain.tobytes()


def row_by_hand(x: Array, codes: Array, scales: Array, k: int, order: str, columns: range) -> Array:
    """The row projection with fractions rounded at each step, one column after the other."""
    rows, each = len(codes), -(-len(codes) // 128)
    out = np.zeros(len(columns), F32)
    states = trellis_layout.whole_states(codes, k, 12, 256)
    for place, column in enumerate(columns):
        splits = np.zeros((128, 1), F32)
        for row in range(rows):
            code = host_lut.unrefined(12)[states[row, column]]
            weight = Fraction(float(rounded(Fraction(float(code)) * Fraction(float(scales[row])), False)))
            total = weight * Fraction(float(x[0, row])) + Fraction(float(splits[row // each, 0]))
            splits[row // each] = rounded(total, False)
        lanes = splits[:32] + np.float32(0)
        for first in (32, 64, 96):
            lanes = splits[first : first + 32] + lanes
        out[place] = fused.simd_sum(lanes, order)[0]
    return out


@pytest.mark.parametrize(("k", "rows"), [(2, 5), (3, 129)])
def test_the_row_is_each_step_rounded_once(k: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    codes = rng.integers(0, 2**32, (rows, 8 * k), dtype=np.uint64).astype(np.uint32)
    x = rng.standard_normal((1, rows)).astype(F32)
    scales = rng.uniform(0.01, 0.02, rows).astype(np.float16)
    got = trellis_row.down_row(x, Packed(codes, k, 12), scales, F32, "sequential")
    columns = range(0, 256, 5)
    assert got[0, columns].tobytes() == row_by_hand(x, codes, scales, k, "sequential", columns).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 67, 129, 700])
def test_the_bound_holds_and_is_no_wider_than_it_must_be(rows: int, dtype: Any) -> None:
    rng = np.random.default_rng(rows)
    codes = rng.integers(0, 2**32, (rows, 32), dtype=np.uint64).astype(np.uint32)
    x = rng.standard_normal((1, rows)).astype(dtype)
    scales = rng.uniform(0.01, 0.02, rows).astype(np.float16)
    given = (x, Packed(codes, 4, 12), scales)
    total, size = trellis_bound.exact(*given)
    for order in fused.ORDERS:
        got = trellis_row.down_row(*given, dtype, order)
        expected = trellis_bound.down_row(*given, dtype)
        apart = np.abs(trellis_bound.ranks(got) - trellis_bound.ranks(expected))
        assert (apart <= trellis_bound.distance(x, total, size, expected)).all()
    error = np.abs(trellis_row.down_row(*given, F32, "sequential") - total)
    assert (error <= trellis_bound.error(x, size)).all()
    assert (trellis_bound.error(x, size) < 2.0**-17 * size).all()


def reversed_bits(words: Array, k: int, L: int, T: int) -> Array:
    return honest_states(words.reshape(len(words), -1, T * k // 32)[..., ::-1].reshape(words.shape), k, L, T)


def without_wrap(words: Array, k: int, L: int, T: int) -> Array:
    found = honest_states(words, k, L, T).reshape(-1, T).copy()
    for t in range(-(-L // k) - 1):
        found[:, t] &= (1 << (t + 1) * k) - 1
    return found.reshape(len(words), -1)


def forward_in_time(words: Array, k: int, L: int, T: int) -> Array:
    return honest_states(words, k, L, T).reshape(len(words), -1, T)[..., ::-1].reshape(len(words), -1)


honest_states = trellis_layout.states
BY_NAME: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "signed hash": (host_lut, "byte_sum", lambda s: ((s * 34038481) % 2**31 + 76625530) % 255 - 510),
    "exact codes unrefined": (host_lut, "exact_of", host_lut.unrefined_of),
    "unrefined codes exact": (host_lut, "unrefined_of", host_lut.exact_of),
    "refined codes unrefined": (host_lut, "refined_of", host_lut.unrefined_of),
    "no wrap": (trellis_layout, "states", without_wrap),
    "words in reverse": (trellis_layout, "states", reversed_bits),
    "time forward": (trellis_layout, "states", forward_in_time),
    "interleave lost": (trellis_layout, "rows_of", lambda codes, i: codes.reshape(codes.shape[1], -1) if i else codes),
    "scales lost": (trellis_decode, "multiplied", lambda a, b, flush: a),
    "fma in float64": (trellis_row, "fma", lambda a, b, c, f=False: (a.astype("f8") * b + c).astype(F32)),
    "fma twice rounded": (trellis_row, "fma", lambda a, b, c, f=False: a * b + c),
    "no flush": (trellis_row, "fma", lambda a, b, c, f=False: fused.fma(a, b, c)),
    "x not flushed": (trellis_row, "flushed", lambda values: values),
    "one order for all": (trellis_row, "simd_sum", lambda v, order, f=False: fused.simd_sum(v, "sequential")),
    "sums in the dtype": (trellis_row, "trellis_fold",
                          lambda p, dtype, order, f=False: sum(p[0].astype(dtype), dtype.type(0))[None]),
    "scale applied late": (trellis_row, "multiplied", lambda a, b, flush: a),
    "float64 rounded twice": (trellis_bound, "round_once", lambda v, dtype: (v * (1 + 2.0**-20)).astype(dtype)),
    "no bound": (trellis_bound, "error", lambda x, size: size),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BY_NAME)
def test_a_planted_fault_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, fault = BY_NAME[name]
    monkeypatch.setattr(module, function, fault)
    host_lut.sums.cache_clear()
    try:
        oracle = trellis_decode if module is trellis_layout else module
        with pytest.raises(OracleFault, match=f"from oracle {oracle.NAME} .*but got"):
            oracle.self_test()
    finally:
        host_lut.sums.cache_clear()


def test_digests_are_of_little_endian_bytes() -> None:
    assert host_lut.DIGESTS["sums"] == hashlib.sha256(host_lut.sums(12).astype("<i2").tobytes()).hexdigest()
