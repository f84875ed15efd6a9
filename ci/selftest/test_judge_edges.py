"""One call held against what is expected of it: what a finding says, of what, and with which evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from played import DOUBLE, FLUSHING, Shelf, of, returned, subcase

from mlx_assay.conformance.contract import Contract, Reference, Rule
from mlx_assay.conformance.judging.finding import CONFORMING, Finding, Judged
from mlx_assay.conformance.judging.panel import Panel
from mlx_assay.conformance.judging.power import powerless_twin
from mlx_assay.conformance.process.exchange import POISONS, Outcome
from mlx_assay.conformance.process.protocol import Raised
from mlx_assay.conformance.verdict import LADDER, Verdict
from mlx_assay.fixtures.case import Subcase

RULES = (Rule(3, "It doubles.", "the text"), Rule(7, "It rounds.", "the text"))


def judged(
    one: Subcase | None = None,
    references: tuple[Reference, ...] = (DOUBLE.reference("right"),),
    shelf: Shelf = DOUBLE,
    outcomes: tuple[Outcome, ...] = (),
    place: tuple[int, int] = (0, 1),
    answers: tuple[np.ndarray | None, ...] = (),
    **fields: Any,
) -> Judged:
    """A subcase of a case; `place` is its number among so many."""
    contract = Contract("double", "", ("x", "y"), ("float32",), references, RULES, **fields)
    panel = Panel(contract, shelf, contract.relaxations)
    asked = one or subcase(1, 2)
    expected = [] if asked.raises else panel.expect({"x": asked.arguments["x"].array})  # type: ignore[union-attr]
    return Judged(contract, panel, contract.relaxations, asked, expected, FLUSHING, outcomes, *place, answers)


def test_what_conforms_is_all_of_the_ladder_but_its_foot() -> None:
    assert LADDER[:-1] == CONFORMING
    assert LADDER[-1] is Verdict.DIFFERS


def test_what_the_checker_found_outweighs_the_answer() -> None:
    for outcome in (returned(2, 4), returned(0, 0), Outcome(type="int")):
        found = judged().finding(Outcome(**{**vars(outcome), "found": "race at line 3"}))
        assert (found.verdict, found.message) == (Verdict.ERROR, "the checker: race at line 3")


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome(type="list"), "got list, expected mlx.core.array"),
        (returned(2), "got float32 1, expected float32 2"),
        (returned(2, 4, dtype=np.float16), "got float16 2, expected float32 2"),
        (of(np.zeros((2, 3), np.float32)), "got float32 2x3, expected float32 2"),
        (of(np.float32(2).reshape(())), "got float32 scalar, expected float32 2"),
        (Outcome(dtype="float32", shape=(9999,)), "got float32 9999, expected float32 2"),
        # Too large to have been sent, whatever it says of itself.
        (Outcome(dtype="float32", shape=(2,)), "got float32 2, expected float32 2"),
    ],
)
def test_an_answer_of_another_kind_is_an_error(outcome: Outcome, said: str) -> None:
    asked = judged()
    found = asked.finding(outcome)
    assert (found.verdict, found.message, found.subcase is asked.subcase) == (Verdict.ERROR, said, True)
    assert found.difference is None


def raised(*bases: str, type_: str = "", message: str = "no", traceback: str = "") -> Outcome:
    return Outcome(raised=Raised(0, [*bases, "Exception"], type_ or bases[0], message, traceback))


def test_what_is_raised_is_held_against_what_should_be() -> None:
    asked = judged(subcase(1, 2, raises=("TypeError", "ValueError")))
    for outcome in (raised("ValueError"), raised("TypeError"), raised("ValueError", type_="pkg.Refused")):
        found = asked.finding(outcome)
        assert (found.verdict, found.message, found.subcase) == (Verdict.SAME_BITS, "", asked.subcase)
    other = asked.finding(raised("KeyError"))
    assert (other.verdict, other.message) == (
        Verdict.ERROR,
        "raised KeyError: no, expected TypeError or ValueError",
    )
    disguised = asked.finding(raised("KeyError", type_="ValueError"))
    assert disguised.message == "raised ValueError (not the built-in one): no, expected TypeError or ValueError"
    silent = asked.finding(returned(2, 4))
    assert (silent.verdict, silent.message) == (
        Verdict.ERROR,
        "got float32 2, expected TypeError or ValueError to be raised",
    )


def test_what_is_raised_where_nothing_should_be() -> None:
    found = judged().finding(raised("RuntimeError", traceback="\n".join(f"line {n}" for n in range(12)) + "\n\n"))
    assert found.verdict is Verdict.ERROR
    assert found.message == "raised RuntimeError: no, expected a result\n" + "\n".join(
        f"line {n}" for n in range(4, 12)
    )
    missing = judged().finding(raised("NotImplementedError", "RuntimeError"))
    assert (missing.verdict, missing.message) == (
        Verdict.UNSUPPORTED,
        "raised NotImplementedError: no, expected a result",
    )
    nameless = judged().finding(Outcome(raised=Raised(0, [], "", "it could not be read", "")))
    assert nameless.message == "it could not be read, expected a result"


def test_a_changed_input_weighs_more_than_an_answer_and_less_than_none() -> None:
    two = judged(subcase(1, 2, y=3))
    for outcome in (returned(2, 4, changed=(0, 1)), returned(2, 5, changed=(0, 1))):
        found = two.finding(outcome)
        assert (found.verdict, found.subcase) == (Verdict.ERROR, two.subcase)
        assert found.message == "the call changed its input x, y; inputs belong to the caller"
    assert two.finding(Outcome(type="int", changed=(0,))).message == "got int, expected mlx.core.array"
    lacking = two.finding(Outcome(**{**vars(raised("NotImplementedError")), "changed": (0,)}))
    assert lacking.verdict is Verdict.UNSUPPORTED


def test_the_weakest_rung_over_the_references_that_ask_for_bits() -> None:
    shelf = Shelf(right=lambda x: x + x, near=lambda x: np.nextafter(x + x, np.float32(9)), nan=lambda x: -(x + x))
    right, near = shelf.reference("right"), shelf.reference("near", Verdict.WITHIN_ULP, ulps=lambda *_: 1)
    assert judged(None, (right, near), shelf).finding(returned(2, 4)).verdict is Verdict.SAME_BITS
    assert judged(None, (near,), shelf).finding(returned(2, 4)).verdict is Verdict.WITHIN_ULP
    nan = subcase(np.nan, np.nan)
    got = of(np.array([np.nan, np.nan], np.float32))
    strict = shelf.reference("right", Verdict.SAME_BITS)
    found = judged(nan, (strict, shelf.reference("nan")), shelf).finding(got)
    assert (found.verdict, found.relaxations) == (Verdict.SAME_VALUE, ("nan-any",))
    assert judged(nan, (strict,), shelf).finding(got).relaxations == ()
    missed = judged(nan, (shelf.reference("nan", Verdict.SAME_BITS),), shelf).finding(got)
    assert (missed.verdict, missed.policy, missed.oracle) == (Verdict.DIFFERS, "same-bits", "nan 1.0")


def rule_of(reference_rule: str, **fields: Any) -> str:
    found = judged(None, (DOUBLE.reference("right", rule=reference_rule),), **fields).finding(returned(2, 5))
    assert found.difference is not None
    return found.difference.rule


def test_the_rule_that_is_broken() -> None:
    def broken(arguments: Mapping[str, Any]) -> Mapping[str, int]:
        return {"": 7, "other": 3}

    def failing(arguments: Mapping[str, Any]) -> Mapping[str, int]:
        raise IndexError("beyond")

    assert rule_of("rule 3 of the contract") == "3"
    assert rule_of("rule 3", broken=broken) == "3"
    assert rule_of("rule 33", broken=broken) == "7"
    assert rule_of("its rule 3", broken=broken) == "7"
    assert rule_of("", broken=broken) == "7"
    assert rule_of("rule 5") == ""
    assert rule_of("", broken=failing) == ""


def test_evidence_of_a_difference() -> None:
    hooks = {name: (lambda arguments: {}) for name in ("marks", "suspects", "broken")}
    outcomes = tuple(returned(10 * place, 1) for place in range(6))
    answers = (np.zeros(2), np.ones(2), None)
    asked = judged(None, outcomes=outcomes, place=(1, 3), answers=answers, addends=lambda arguments: (), **hooks)
    first = asked.finding(outcomes[1], 0)
    assert first.evidence is not None
    evidence = first.evidence
    assert (evidence.got is outcomes[1].array, evidence.want.tolist(), evidence.at.tolist()) == (True, [2, 4], [0, 1])
    assert (evidence.poison, evidence.other_poison) == POISONS
    assert evidence.other is outcomes[4].array
    assert (evidence.marks, evidence.suspects, evidence.broken) == tuple(hooks.values())
    assert evidence.addends is asked.contract.addends
    assert set(evidence.arguments) == {"x", "executor"}
    assert [(name, array.tolist()) for name, array in evidence.earlier] == [
        ("the output of the call before", [0, 1]),
        ("the right answer of the call before", [0, 0]),
    ]
    second = asked.repeated(outcomes[4])
    assert second.evidence is not None
    assert (second.evidence.poison, second.evidence.other_poison) == POISONS[::-1]
    assert second.evidence.other is outcomes[1].array
    # Its own right answer tells nothing, and a call that should raise has none.
    assert [(name, array.tolist()) for name, array in second.evidence.earlier] == [
        ("the output of the call before", [30, 1]),
        ("the right answer of the call before", [0, 0]),
        ("the output of 2 calls before", [20, 1]),
        ("the output of 3 calls before", [10, 1]),
    ]
    # Of calls that have not come only the right answers are known.
    early = judged(None, place=(1, 3), answers=answers).finding(returned(9, 9))
    assert early.evidence is not None
    assert early.evidence.other is None
    assert [name for name, _ in early.evidence.earlier] == ["the right answer of the call before"]
    alone = judged(None, outcomes=outcomes[:1]).finding(outcomes[0])
    assert alone.evidence is not None
    assert (alone.evidence.other, alone.evidence.earlier) == (None, [])


def test_evidence_of_two_calls_that_differ() -> None:
    nan = np.array([0x7FC00000, 0x40800000], np.uint32).view(np.float32)
    other = np.array([0x7FC00001, 0x40800000], np.uint32).view(np.float32)
    hooks = {name: (lambda arguments: {}) for name in ("marks", "suspects", "broken")}
    asked = judged(subcase(np.nan, 2), addends=lambda arguments: (), outcomes=(of(nan), of(other)), **hooks)
    found = asked.unstable(of(nan), of(other))
    assert (found.verdict, found.policy, found.oracle) == (Verdict.DIFFERS, "same-bits", "")
    assert found.evidence is not None
    assert (found.evidence.marks, found.evidence.suspects, found.evidence.addends, found.evidence.broken) == (None,) * 4
    assert (found.evidence.got is not None, found.evidence.at.tolist()) == (True, [0])
    assert (found.evidence.poison, found.evidence.other_poison) == POISONS[::-1]
    same = asked.unstable(of(nan), of(nan.copy()))
    assert same == Finding(Verdict.SAME_BITS, subcase=asked.subcase)
    for one, two in ((Outcome(type="int"), of(nan)), (of(nan), Outcome(type="int"))):
        assert asked.unstable(one, two) == Finding(Verdict.SAME_BITS, subcase=asked.subcase)
    for differing in (nan.astype(np.float16), nan[:1], nan.reshape(2, 1)):
        shape = asked.unstable(of(nan), of(differing))
        assert (shape.verdict, shape.difference, shape.subcase) == (Verdict.DIFFERS, None, asked.subcase)
        assert shape.message == "called again with the same input, it returned another shape or dtype"


def test_an_exhibit_has_both_calls_and_every_expected_output() -> None:
    shelf = Shelf(right=lambda x: x + x, other=lambda x: x + x)
    references = (shelf.reference("right"), shelf.reference("other"))
    outcomes = tuple(returned(place, 1) for place in range(4))
    found = judged(None, references, shelf, outcomes, (1, 2)).finding(outcomes[1])
    assert found.exhibit is not None
    assert [one.tolist() for one in found.exhibit.rounds if one is not None] == [[1, 1], [3, 1]]
    assert [name for name, _ in found.exhibit.wants] == ["right 1.0", "other 1.0"]
    half = judged(None, references, shelf, outcomes[:2], (1, 2)).finding(outcomes[1])
    assert half.exhibit is not None
    assert [one.tolist() for one in half.exhibit.rounds if one is not None] == [[1, 1]]
    alone = judged().finding(returned(5, 5))
    assert alone.exhibit is not None
    assert [one.tolist() for one in alone.exhibit.rounds if one is not None] == [[5, 5]]


def test_words_and_arguments_that_cannot_be_made_do_not_end_the_judge() -> None:
    def failing(*rest: Any) -> Any:
        raise IndexError("beyond")

    found = judged(explain=failing).finding(returned(2, 5))
    assert "(no explanation: IndexError: beyond, " in found.message
    said = judged(explain=lambda arguments, got, want, index: f"{sorted(arguments)} {got} {want} {index}")
    assert "(['executor', 'x'] [2. 5.] [2. 4.] (1,), " in said.finding(returned(2, 5)).message
    contract = Contract("double", "", ("x",), ("float32",), (DOUBLE.reference("right"),), (), prepare=failing)
    expected = judged().expected
    only = Judged(contract, judged().panel, (), subcase(1, 2), expected)
    assert (only.executor, only.outcomes, only.index, only.count, only.answers) == ({}, (), 0, 1, ())
    plain = only.finding(returned(2, 5))
    assert plain.evidence is not None
    assert set(plain.evidence.arguments) == {"x", "executor"}


def test_a_twin_has_power_over_no_case_with_an_answer_of_another_kind() -> None:
    rows = [subcase(0, 0), subcase(0, 0)]

    def expectations(references: tuple[Reference, ...], shelf: Shelf) -> list[Any]:
        panel = Panel(Contract("double", "", ("x",), ("float32",), references, ()), shelf, ())
        return [panel.expect({"x": row.arguments["x"].array}) for row in rows]  # type: ignore[union-attr]

    assert powerless_twin(rows, expectations((DOUBLE.reference("right"),), DOUBLE), ()) == "an output of zeros"
    shelf = Shelf(ids=lambda x: (x + 1).astype(np.uint32))
    ones = expectations((shelf.reference("ids"),), shelf)
    assert powerless_twin(rows, ones, ()) == "the output of the previous call"
    assert powerless_twin(rows[:1], ones[:1], ()) == "the output of the previous call"
    assert powerless_twin(rows, [ones[0], []], ()) is None
