"""Comparison: encodings, relaxations and distances, over every encoding of the 16-bit dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.judging.compare import Comparison, compare, hex_bits, within
from mlx_assay.conformance.judging.relaxation import RELAXATIONS, relaxation
from mlx_assay.conformance.judging.ulp import distances, encodings, is_denormal, is_nan, is_zero, ordinals
from mlx_assay.conformance.verdict import Verdict

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
SHORT = [BFLOAT16, FLOAT16]
ALL = ("nan-any", "denormal-flush", "denormal-sum")


def every(dtype: np.dtype[Any]) -> np.ndarray:
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


def numbers(dtype: np.dtype[Any]) -> np.ndarray:
    """Every encoding that is not NaN, from -inf through -0 and +0 to +inf."""
    bits = encodings(every(dtype))
    infinity = int(np.array(np.inf, dtype=dtype).view(np.uint16))
    positive = np.arange(infinity + 1, dtype=np.uint16)
    return np.concatenate([bits[positive[::-1] | 0x8000], bits[positive]]).view(dtype)


def widened(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def from_bits(words: list[int], dtype: np.dtype[Any]) -> np.ndarray:
    return np.array(words, dtype=f"u{dtype.itemsize}").view(dtype)


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_every_encoding_equals_itself_alone(dtype: np.dtype[Any]) -> None:
    values = every(dtype)
    assert compare(values, values.copy(), ()) == Comparison(Verdict.SAME_BITS, 0, 1 << 16, 0, (), ())
    for bit in range(16):
        flipped = (encodings(values) ^ np.uint16(1 << bit)).view(dtype)
        found = compare(flipped, values, ())
        assert (found.rung, found.count) == (Verdict.DIFFERS, 1 << 16)


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_ranks_rise_by_one_over_all_numbers(dtype: np.dtype[Any]) -> None:
    ranks = ordinals(numbers(dtype))
    assert (np.diff(ranks) == 1).all()
    assert ordinals(from_bits([0x8000, 0x0000], dtype)).tolist() == [-1, 0]


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_neighbours_of_nextafter_are_one_apart(dtype: np.dtype[Any]) -> None:
    values = numbers(dtype)
    with np.errstate(over="ignore"):
        above = np.nextafter(values[:-1], np.array(np.inf, dtype=dtype))
    minus_zero = encodings(values[:-1]) == 0x8000
    assert (distances(above, values[:-1]) == np.where(minus_zero, 2, 1)).all()


def test_neighbours_in_float32_are_one_apart() -> None:
    words = np.random.default_rng(5).integers(1, 0x7F7FFFFF, 20000, dtype=np.uint32)
    values = np.concatenate([words, words | 0x80000000]).astype(np.uint32).view(np.float32)
    assert (distances(np.nextafter(values, np.float32(np.inf)), values)[: len(words)] == 1).all()
    assert (distances(np.nextafter(values, np.float32(-np.inf)), values)[len(words) :] == 1).all()


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16, FLOAT32], ids=str)
def test_the_largest_distances_do_not_wrap(dtype: np.dtype[Any]) -> None:
    infinities = np.array([-np.inf, np.inf], dtype=dtype)
    apart = distances(infinities[:1], infinities[1:])
    steps = int(encodings(infinities[1:])[0])
    assert apart.tolist() == [2 * steps + 1]


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_nan_and_denormals_are_told_from_bits_as_numpy_tells_them(dtype: np.dtype[Any]) -> None:
    values = every(dtype)
    wide = widened(values)
    assert np.array_equal(is_nan(values), np.isnan(wide))
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    assert np.array_equal(is_denormal(values), (np.abs(wide) < tiny) & (wide != 0))
    assert np.array_equal(is_zero(values), wide == 0)


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16, FLOAT32], ids=str)
@pytest.mark.parametrize("bound", [0, 1, 1 << 40, np.iinfo(np.int64).max, np.nan, np.inf])
def test_nan_against_a_number_never_passes(dtype: np.dtype[Any], bound: float) -> None:
    nan = np.array([np.nan, 1.0, np.nan], dtype=dtype)
    one = np.array([1.0, np.nan, np.inf], dtype=dtype)
    found = compare(nan, one, ALL, np.full(3, bound))
    assert (found.rung, found.count, found.worst_ulp) == (Verdict.DIFFERS, 3, None)


def test_a_bound_that_is_nan_or_negative_lets_nothing_pass() -> None:
    got, want = np.array([1.0, 2.0], np.float32), np.nextafter(np.array([1.0, 2.0], np.float32), np.float32(9))
    for bound in (np.full(2, np.nan), np.full(2, -1), -1):
        assert compare(got, want, (), bound).rung is Verdict.DIFFERS
    assert not within(got, want, np.array([np.nan, -1.0])).any()
    assert compare(got, want, (), 1).rung is Verdict.WITHIN_ULP


def test_without_a_bound_the_nearest_neighbour_differs() -> None:
    found = compare(np.array([1.0], np.float16), np.array([1.001], np.float16), ALL)
    assert (found.rung, found.worst_ulp) == (Verdict.DIFFERS, 1)
    assert found.places[0].got == "0x3c00"
    assert found.places[0].want == "0x3c01"


def test_a_bound_may_differ_from_element_to_element() -> None:
    want = np.array([[1.0, 1.0], [1.0, 1.0]], np.float32)
    got = from_bits([0x3F800002] * 4, FLOAT32).reshape(2, 2)
    found = compare(got, want, (), np.array([[2, 1], [2, 2]]))
    assert (found.rung, found.count, found.places[0].index) == (Verdict.DIFFERS, 1, [0, 1])
    assert compare(got, want, (), np.array([[2, 2], [2, 3]])).rung is Verdict.WITHIN_ULP


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16, FLOAT32], ids=str)
def test_zeros_of_opposite_signs_never_agree(dtype: np.dtype[Any]) -> None:
    zeros = np.array([0.0, -0.0], dtype=dtype)
    found = compare(zeros, zeros[::-1].copy(), ALL, 1 << 20)
    assert (found.rung, found.count, found.worst_ulp) == (Verdict.DIFFERS, 2, 1)


def test_nan_payloads_are_one_value_only_where_the_contract_says_so() -> None:
    quiet, other = from_bits([0x7FC00000], FLOAT32), from_bits([0xFFC00001], FLOAT32)
    assert compare(quiet, other, ()).rung is Verdict.DIFFERS
    found = compare(quiet, other, ("nan-any",))
    assert (found.rung, found.relaxations) == (Verdict.SAME_VALUE, ("nan-any",))


@pytest.mark.parametrize(
    ("dtype", "got", "want", "passes"),
    [
        (FLOAT32, 0x00000001, 0x00000000, True),
        (FLOAT32, 0x80000000, 0x807FFFFF, True),
        (FLOAT32, 0x80000000, 0x00000001, False),
        (FLOAT32, 0x00800000, 0x00000000, False),
        (FLOAT32, 0x00000001, 0x00000002, False),
        (BFLOAT16, 0x0001, 0x0000, True),
        (BFLOAT16, 0x0080, 0x0000, False),
        (FLOAT16, 0x0001, 0x0000, False),
        (np.dtype(np.uint32), 0x00000001, 0x00000000, False),
    ],
)
def test_flushed_denormals(dtype: np.dtype[Any], got: int, want: int, passes: bool) -> None:
    found = compare(from_bits([got], dtype), from_bits([want], dtype), ("denormal-flush",))
    assert found.rung is (Verdict.SAME_VALUE if passes else Verdict.DIFFERS)
    assert found.relaxations == (("denormal-flush",) if passes else ())
    assert compare(from_bits([got], dtype), from_bits([want], dtype), ("nan-any",)).rung is Verdict.DIFFERS


@pytest.mark.parametrize(
    ("dtype", "got", "want", "passes"),
    [
        (FLOAT32, 0x00000000, 0x80000001, True),
        (FLOAT32, 0x807FFFFF, 0x00000000, True),
        (FLOAT32, 0x80000000, 0x80000001, False),
        (FLOAT32, 0x80000000, 0x00000000, False),
        (FLOAT32, 0x00000000, 0x80800000, False),
        (BFLOAT16, 0x0000, 0x8040, True),
        (FLOAT16, 0x0000, 0x8001, False),
    ],
)
def test_denormals_that_a_sum_with_zero_flushes(dtype: np.dtype[Any], got: int, want: int, passes: bool) -> None:
    found = compare(from_bits([got], dtype), from_bits([want], dtype), ("denormal-sum",))
    assert found.rung is (Verdict.SAME_VALUE if passes else Verdict.DIFFERS)


@pytest.mark.parametrize("dtype", SHORT, ids=str)
def test_relaxations_let_pass_what_their_definition_says_over_all_pairs_with_zero(dtype: np.dtype[Any]) -> None:
    values = every(dtype)
    zero = np.zeros(1 << 16, dtype=dtype)
    wide = widened(values)
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    flushed = (wide > 0) & (wide < tiny) if dtype == BFLOAT16 else np.zeros(1 << 16, dtype=bool)
    assert np.array_equal(relaxation("denormal-flush")(values, zero), flushed)
    assert np.array_equal(relaxation("nan-any")(values, np.full(1 << 16, np.nan, dtype=dtype)), np.isnan(wide))


def test_what_is_left_after_relaxations_is_what_is_counted() -> None:
    got = np.array([np.nan, 1.0, 3.0, 4.0], np.float32)
    want = np.array([-np.nan, 1.0, 2.0, 4.0], np.float32)
    found = compare(got, want, ALL)
    assert (found.rung, found.count, found.total, found.worst_ulp) == (Verdict.DIFFERS, 1, 4, 1 << 22)
    assert [place.index for place in found.places] == [[2]]


def test_five_places_are_kept_in_row_major_order() -> None:
    got, want = np.arange(12, dtype=np.uint32).reshape(3, 4), np.zeros((3, 4), np.uint32)
    found = compare(got, want, ALL, 1 << 40)
    assert (found.rung, found.count, found.total, found.worst_ulp) == (Verdict.DIFFERS, 11, 12, None)
    assert [place.index for place in found.places] == [[0, 1], [0, 2], [0, 3], [1, 0], [1, 1]]
    assert found.places[0].got == "0x00000001"


def test_scalars_and_empty_arrays() -> None:
    found = compare(np.array(7, np.uint32), np.array(8, np.uint32), ())
    assert (found.rung, found.count, found.places[0].index, found.places[0].want) == (
        Verdict.DIFFERS,
        1,
        [],
        "0x00000008",
    )
    empty = np.zeros((0, 4), np.float32)
    assert compare(empty, empty.copy(), ()).rung is Verdict.SAME_BITS


def test_broadcast_and_strided_arrays_are_compared_by_their_values() -> None:
    base = np.arange(12, dtype=np.uint32).reshape(3, 4)
    assert compare(base.T, base.T.copy(), ()).rung is Verdict.SAME_BITS
    found = compare(base.T, np.ascontiguousarray(base.T) + np.uint32(1), ())
    assert (found.count, found.places[1].index, found.places[1].got) == (12, [0, 1], "0x00000004")


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.zeros(3, np.float32), np.zeros(4, np.float32)),
        (np.zeros(3, np.int32), np.zeros(3, np.uint32)),
        (np.zeros((3, 1), np.float32), np.zeros(3, np.float32)),
        (np.zeros(3, np.float16), np.zeros(3, BFLOAT16)),
    ],
)
def test_other_shapes_and_dtypes_are_the_callers_to_judge(got: np.ndarray, want: np.ndarray) -> None:
    with pytest.raises(ValueError, match="Expected outputs of one dtype and shape"):
        compare(got, want, ())


def test_an_unknown_relaxation_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ValueError, match=f"{', '.join(RELAXATIONS)} but got 'close-enough'"):
        compare(np.zeros(1, np.float32), np.ones(1, np.float32), ("close-enough",))


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.float32(1), "0x3f800000"),
        (np.uint32(31), "0x0000001f"),
        (np.float16(-0.0), "0x8000"),
        (np.uint8(7), "0x07"),
    ],
)
def test_hex_bits_have_full_width(array: np.generic, text: str) -> None:
    assert hex_bits(array) == text
