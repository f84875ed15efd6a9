"""Comparison where one step decides: NaN beside NaN, the smallest denormal beside zero, dtypes without a distance."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.judging.compare import compare, within
from mlx_assay.conformance.judging.relaxation import signs
from mlx_assay.conformance.judging.ulp import distances, is_denormal, magnitudes
from mlx_assay.conformance.verdict import Verdict


def floats(*words: int) -> np.ndarray:
    return np.array(words, np.uint32).view(np.float32)


QUIET, OTHER, NEGATIVE = 0x7FC00000, 0x7FC00009, 0xFFC00000


def test_two_nan_are_no_distance_apart_whatever_their_payloads() -> None:
    got, want = floats(QUIET, QUIET, QUIET, 0x3F800000), floats(QUIET, OTHER, NEGATIVE, QUIET)
    assert distances(got, want).tolist() == [0, 0, 0, -1]
    assert within(got, want, np.zeros(4)).tolist() == [True, True, True, False]
    found = compare(got, want, (), 0)
    assert (found.rung, found.count, found.worst_ulp) == (Verdict.DIFFERS, 1, None)
    found = compare(got[:3], want[:3], (), 0)
    assert (found.rung, found.count, found.worst_ulp) == (Verdict.WITHIN_ULP, 2, 0)


def test_the_smallest_denormal_is_one_from_zero_on_its_side() -> None:
    zero, minus, tiny = 0x00000000, 0x80000000, 0x00000001
    got, want = floats(zero, tiny, zero, minus, tiny), floats(tiny, zero, minus, zero, minus)
    assert distances(got, want).tolist() == [1, 1, 1, 1, 2]
    assert within(got, want, np.full(5, 2)).tolist() == [True, True, False, False, True]


def test_one_distance_that_does_not_exist_leaves_no_worst() -> None:
    found = compare(floats(QUIET, 0x3F800000), floats(0x3F800000, 0x3F800001), ())
    assert (found.count, found.worst_ulp) == (2, None)


def test_signs_are_those_of_the_bits() -> None:
    assert signs(floats(0x80000000, 0, NEGATIVE, QUIET, 0xFF800000)).tolist() == [True, False, True, False, True]


def test_the_largest_of_several_distances_is_told() -> None:
    got, want = floats(0x3F800000, 0x3F800000, 0x3F800000), floats(0x3F800001, 0x3F800007, 0x3F800003)
    assert compare(got, want, (), 7).worst_ulp == 7
    assert compare(got, want, ()).worst_ulp == 7


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_largest_denormal_is_one_and_the_smallest_normal_none(dtype: type) -> None:
    smallest = np.array([ml_dtypes.finfo(dtype).smallest_normal], dtype)
    word = np.dtype(f"u{smallest.dtype.itemsize}")
    beneath = (smallest.view(word) - word.type(1)).view(dtype)
    assert is_denormal(np.concatenate([beneath, -beneath, smallest, -smallest])).tolist() == [True, True, False, False]
    assert magnitudes(-smallest).tolist() == smallest.view(word).tolist()


def test_ids_have_no_distance_that_could_pass() -> None:
    got, want = np.array([[7, 9]], np.uint32), np.array([[7, 8]], np.uint32)
    found = compare(got, want, ("nan-any", "denormal-flush", "denormal-sum"), 1)
    assert (found.rung, found.count, found.total, found.worst_ulp) == (Verdict.DIFFERS, 1, 2, None)
    assert found.at.tolist() == [1]


def test_outputs_that_agree_have_nothing_to_tell() -> None:
    found = compare(floats(1, 2), floats(1, 2), ("nan-any",), 3)
    assert (found.rung, found.count, found.total, found.worst_ulp) == (Verdict.SAME_BITS, 0, 2, 0)
    assert (found.places, found.relaxations, found.at.tolist()) == ((), (), [])
