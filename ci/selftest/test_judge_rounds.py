"""Two calls of one subcase that come to things of several kinds, the rule of what is found, and who is asked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from played import DOUBLE, Played, Shelf, of, played, returned, subcase

from mlx_assay.conformance.contract import GRAPH_SECONDS, Contract, Rule, contracts
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.exchange import Outcome
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import Kind, kind_of

ROWS = [subcase(1, 2, label="first"), subcase(3, 4, label="second")]
RIGHT = [returned(2, 4), returned(6, 8)]


def test_a_call_of_two_that_returns_no_array_is_an_error() -> None:
    other = Outcome(type="int")
    for outcomes in ([other, RIGHT[1], *RIGHT], [*RIGHT, other, RIGHT[1]], [other, RIGHT[1]] * 2):
        record = played(ROWS, outcomes)
        assert record.verdict is Verdict.ERROR
        assert "got int, expected mlx.core.array" in record.message


def test_the_same_bits_of_another_dtype_are_not_the_same() -> None:
    words = of(np.array([2, 4], np.float32).view(np.uint32))
    for outcomes in ([words, RIGHT[1], *RIGHT], [*RIGHT, words, RIGHT[1]]):
        record = played(ROWS, outcomes)
        assert record.verdict is Verdict.ERROR
        assert "got uint32 2, expected float32 2" in record.message


def rule(share: int) -> str:
    """The rule of a row of 64 of whose places the first few hold the input in place of its double."""
    row = np.linspace(1, 2, 64, dtype=np.float32)
    wrong = np.where(np.arange(64) < share, row, -row)
    record = played(
        [subcase(*row), ROWS[1]],
        [of(wrong), RIGHT[1]] * 2,
        diagnosed=True,
        rules=(Rule(1, "It doubles.", "the text"), Rule(2, "It copies nothing.", "the text")),
        suspects=lambda arguments: {"the input": lambda: np.asarray(arguments["x"])},
        broken=lambda arguments: {"": 1, "the input": 2},
    )
    assert record.difference is not None
    assert record.difference.pattern is not None
    assert "\n  pattern: " in record.message
    assert record.message.count("\n") == 2
    return record.difference.rule


def test_the_rule_of_a_diagnosis_that_covers_everything_is_the_difference_s() -> None:
    assert rule(64) == "2"
    assert rule(0) == "1"
    assert rule(48) == "1"


def test_contract_kind_and_oracles_are_those_of_the_case() -> None:
    case = Case.parse("apply_token_bitmask/float32/error/bits-plain?bits=none&seed=0")
    contract = contracts()[case.operation]

    def absent(name: str) -> Any:
        raise ImportError("not here")

    record = judge(case, Played([]), oracles=absent)  # type: ignore[arg-type]
    names = list(dict.fromkeys(one.oracle.replace("_", "-") for one in contract.references))
    assert (record.verdict, record.missing, record.oracles) == (Verdict.NOT_RUN, names, [])
    assert (record.why, record.tags) == (kind_of(case).why, list(kind_of(case).tags))
    assert record.subcases == len(kind_of(case).subcases(case))
    assert f"No oracle is there: {', '.join(names)} missing" in record.message


def test_the_rule_is_that_of_the_first_diagnosis_alone() -> None:
    row = np.linspace(1, 2, 64, dtype=np.float32)
    contract = Contract(
        *(
            "double",
            "",
            ("x",),
            ("float32",),
            (DOUBLE.reference("right"),),
            (Rule(2, "It copies nothing.", "the text"),),
        ),
        suspects=lambda arguments: {"the input": lambda: row, "the first argument": lambda: row},
        broken=lambda arguments: {"the first": 2},
    )
    subcases = [subcase(*row), ROWS[1]]
    kind = Kind("double", "own/kind", "Because.", ("found",), ("float32",), lambda draw, dtype: subcases)
    case = Case.make("double", "float32", "own/kind", {"seed": 0})
    made = Played([of(row), RIGHT[1]] * 2)
    # What is found is looked into unless it is said not to be.
    record = judge(case, made, contract=contract, kind=kind, oracles=DOUBLE)  # type: ignore[arg-type]
    assert record.difference is not None
    assert record.difference.pattern is not None
    found = [(one.kind, one.covers, one.rule) for one in record.difference.pattern.diagnoses if one.kind == "suspect"]
    assert found == [("suspect", 64, ""), ("suspect", 64, "2")]
    assert record.difference.rule == ""


@pytest.mark.parametrize("graph", [lambda case: case.label, lambda case: "one", None], ids=["each", "one", "none"])
def test_oracles_that_compile_are_asked_before_the_calls_begin(graph: Callable[[Subcase], str] | None) -> None:
    order: list[str] = []

    class Noted(Played):
        def begin(self, *given: Any, **named: Any) -> Any:
            order.append("begin")
            return super().begin(*given, **named)

    def double(x: np.ndarray) -> np.ndarray:
        order.append("oracle")
        return x + x

    rows, right = [subcase(1, 2, label="a"), subcase(3, 4, label="b")], [returned(2, 4), returned(6, 8)]
    implementation = Noted(right * 2)
    record = played(rows, implementation, shelf=Shelf(right=double), graph=graph)
    assert record.verdict is Verdict.SAME_BITS
    assert set(order) == {"begin", "oracle"}
    assert order.index("begin") == (order.count("oracle") if graph else 0)
    count = len({graph(row) for row in rows}) if graph else 0
    assert implementation.patience == count * GRAPH_SECONDS
