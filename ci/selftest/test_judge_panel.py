"""Oracles that bound distances or cannot be prepared, and cases that an implementation without work would pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from played import Shelf, of, played, returned, subcase

from mlx_assay.conformance.judging.panel import Expected
from mlx_assay.conformance.judging.power import powerless_twin
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Subcase

SHELF = Shelf(right=lambda x: x + x)
ROWS = [subcase(1, 2, label="first"), subcase(3, 4, label="second")]
RIGHT = [returned(2, 4), returned(6, 8)]


def test_a_distance_counts_where_it_is_bounded_and_asked_for() -> None:
    unbounded = (SHELF.reference("right", Verdict.WITHIN_ULP),)
    assert played(ROWS, [*RIGHT, *RIGHT], unbounded, shelf=SHELF).verdict is Verdict.SAME_BITS
    near = [of(np.array([0x40000001, 0x40800005], np.uint32).view(np.float32)), RIGHT[1]]
    assert played(ROWS, near * 2, unbounded, shelf=SHELF).verdict is Verdict.DIFFERS
    # A bound that the rung does not ask for forgives nothing: both places are told.
    for rung, count in ((Verdict.SAME_VALUE, 2), (Verdict.WITHIN_ULP, 1)):
        bounded = (SHELF.reference("right", rung, ulps=lambda *_: 2),)
        record = played(ROWS, near * 2, bounded, shelf=SHELF)
        assert record.difference is not None
        assert (record.difference.count, record.difference.total) == (count, 2)


def test_oracles_that_cannot_be_prepared() -> None:
    def prepare(arguments: Any) -> Any:
        raise ZeroDivisionError("out of order")

    record = played(ROWS, [*RIGHT, *RIGHT], prepare=prepare)
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert "Preparing the oracles failed: ZeroDivisionError: out of order" in record.message


def expected(*outputs: np.ndarray) -> list[Expected]:
    """What oracles say of one subcase."""
    return [Expected(SHELF.reference("right"), output, None) for output in outputs]


def test_a_twin_without_an_array_to_return_passes_nothing() -> None:
    plain = [Subcase("plain", {"x": 3.0}), Subcase("plain", {"x": 4.0})]
    ones, twos = np.ones(3, np.float32), np.full(3, 2, np.float32)
    assert powerless_twin(plain, [expected(ones), expected(twos)], ()) is None
    assert powerless_twin(plain, [expected(ones), expected(ones)], ()) == "the output of the previous call"


def test_a_twin_of_another_shape_passes_nothing() -> None:
    columns = [np.array([[1], [2]], np.float32), np.array([[3], [4]], np.float32)]
    assert powerless_twin(ROWS, [expected(one) for one in columns], ()) is None
    assert powerless_twin(ROWS, [expected(one.reshape(2)) for one in columns], ()) == "the input itself"


def test_a_twin_is_held_to_the_whole_output_of_every_oracle() -> None:
    zeros = np.zeros(2000, np.float32)
    late = zeros.copy()
    late[1999] = 1
    rows = [subcase(1), subcase(2)]
    assert powerless_twin(rows, [expected(zeros), expected(zeros)], ()) == "an output of zeros"
    assert powerless_twin(rows, [expected(zeros), expected(late)], ()) is None
    assert powerless_twin(rows, [expected(zeros, late), expected(zeros, zeros)], ()) is None
    assert powerless_twin(rows, [expected(zeros), expected(late, zeros)], ()) is None
