"""Oracles that have an opinion on some arguments alone: each is asked where it has, and its condition once."""

from __future__ import annotations

from typing import Any

from played import Shelf, played, returned, subcase

from mlx_assay.conformance.verdict import Verdict

SHELF = Shelf(right=lambda x: x + x, wrong=lambda x: x)
ROWS = [subcase(1, 2, label="first"), subcase(3, 4, label="second")]
RIGHT = [returned(2, 4), returned(6, 8)]


def test_an_oracle_whose_condition_holds_is_asked() -> None:
    asked: list[list[float]] = []

    def rising(arguments: Any) -> bool:
        asked.append(arguments["x"].tolist())
        return bool(arguments["x"][0] > 2)

    references = (SHELF.reference("right"), SHELF.reference("wrong", applies=rising))
    record = played(ROWS, [*RIGHT, *RIGHT], references, shelf=SHELF)
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert "Oracles right 1.0 and wrong 1.0 disagree at [0]: 0x40c00000 against 0x40400000" in record.message
    assert asked == [[1, 2], [3, 4]]
    # Of several with one condition the first asks it, and the others go by its answer.
    asked.clear()
    twice = (SHELF.reference("right"), *(SHELF.reference("right", applies=rising) for _ in range(2)))
    assert played(ROWS, [*RIGHT, *RIGHT], twice, shelf=SHELF).verdict is Verdict.SAME_BITS
    assert asked == [[1, 2], [3, 4]]
    alone = (SHELF.reference("right", applies=rising),)
    assert "has an opinion on these arguments" in played(ROWS, [*RIGHT, *RIGHT], alone, shelf=SHELF).message
