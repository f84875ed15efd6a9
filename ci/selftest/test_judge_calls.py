"""The judge and the calls of a case: which call is told of, what weighs most, and what a record keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from played import Played, Shelf, died, of, played, returned, subcase

from mlx_assay.conformance.diagnosis.exhibit import Exhibit
from mlx_assay.conformance.diagnosis.keeper import Kept
from mlx_assay.conformance.process.implementation import ImplementationError
from mlx_assay.conformance.verdict import Verdict

ROWS = [subcase(1, 2, label="first"), subcase(3, 4, label="second")]
RIGHT = [returned(2, 4), returned(6, 8)]
REPLAY = "mlx-assay replay 'double/float32/own/kind?seed=0' --implementation played --executor host"
CONTEXT = f"  policy same-value · oracle right 1.0 · executor host · {REPLAY}"
SECOND = "; this was the second call, on other memory, its host arrays overwritten before the evaluation"


def test_what_a_record_says_of_calls_that_are_right() -> None:
    outcomes = [returned(*row, launches=1 << place) for place, row in enumerate(((2, 4), (6, 8), (2, 4), (6, 8)))]
    made = Played(outcomes)
    record = played(ROWS, made, expansion=3)
    assert (record.id, record.operation, record.dtype) == ("double/float32/own/kind?seed=0", "double", "float32")
    assert (record.tags, record.why, record.subcases, record.launches) == (["found"], "Because.", 2, 15)
    assert (record.verdict, record.conforms, record.relaxations) == (Verdict.SAME_BITS, True, [])
    assert (record.oracle, record.oracles, record.missing) == ("right", ["right"], [])
    assert (record.message, record.output, record.difference, record.tensors) == ("", "", None, "")
    assert record.replay == REPLAY
    assert 0 < record.seconds < 60
    assert (made.asked[0], made.asked[2], made.said) == ("double", 3, ["finished"])
    assert [[one.array.tolist() for one in call] for call in made.asked[1]] == [[[1, 2]], [[3, 4]]]


def test_the_first_call_that_is_wrong_is_told() -> None:
    record = played(ROWS, [returned(2, 4), returned(6, 9), *RIGHT])
    assert (record.verdict, record.conforms) == (Verdict.DIFFERS, False)
    assert record.message == (
        f"double[float32 2] at [1]: got 0x41100000 (9) want 0x41000000 (8) (1048576 ULP, 1 of 2 places)\n{CONTEXT}"
    )
    assert record.output == "printed, 4000 characters at most"
    assert record.difference is not None
    assert (record.difference.subcase, record.difference.oracle) == ("second", "right 1.0")
    assert (record.difference.count, record.difference.total, record.difference.worst_ulp) == (1, 2, 1 << 20)
    assert (record.difference.policy, record.difference.rule, record.difference.pattern) == ("same-value", "", None)
    assert [(one.index, one.got, one.want) for one in record.difference.places] == [([1], "0x41100000", "0x41000000")]


def test_a_second_call_that_is_wrong_is_told_as_such() -> None:
    record = played(ROWS, [*RIGHT, returned(2, 4), returned(6, 0)])
    assert record.verdict is Verdict.DIFFERS
    assert record.message.split("\n")[0].endswith(f"1 of 2 places){SECOND}")
    assert record.difference is not None
    assert record.difference.subcase == "second"
    # Both wrong, and not alike: the first is told.
    both = played(ROWS, [returned(2, 5), RIGHT[1], returned(2, 3), RIGHT[1]])
    assert "(5) want" in both.message
    assert SECOND not in both.message


def test_two_calls_that_are_right_in_other_bits_are_unstable() -> None:
    nan, other = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    rows = [subcase(np.nan, 1), ROWS[1]]
    record = played(rows, [returned(nan, 2), RIGHT[1], returned(other, 2), RIGHT[1]])
    assert record.verdict is Verdict.DIFFERS
    assert "called again with the same input on other memory: unwritten, stale or unstable output" in record.message
    assert f"  policy same-bits · executor host · {REPLAY}" in record.message
    assert record.difference is not None
    assert (record.difference.oracle, record.difference.policy, record.difference.rule) == ("", "same-bits", "")
    assert [(one.got, one.want) for one in record.difference.places] == [("0x7fc00001", "0x7fc00000")]
    alike = played(rows, [returned(other, 2), RIGHT[1]] * 2)
    assert (alike.verdict, alike.relaxations) == (Verdict.SAME_VALUE, ["nan-any"])


@pytest.mark.parametrize("second", [returned(2, 4, dtype=np.float16), returned(2, 4, 6)])
def test_a_second_call_of_another_shape_or_dtype_is_an_error(second: Any) -> None:
    record = played(ROWS, [*RIGHT, second, RIGHT[1]])
    assert record.verdict is Verdict.ERROR
    assert f"expected float32 2{SECOND}" in record.message


def test_a_change_of_an_input_in_either_call_outweighs_a_right_answer() -> None:
    changed = returned(2, 4, changed=(0,))
    for outcomes in ([changed, RIGHT[1], *RIGHT], [*RIGHT, changed, RIGHT[1]], [changed, RIGHT[1]] * 2):
        record = played(ROWS, outcomes)
        assert record.verdict is Verdict.ERROR
        assert "the call changed its input x; inputs belong to the caller" in record.message
    two = [subcase(1, 2, y=1.5), subcase(3, 4, y=1.5)]
    both = played(two, [returned(2, 4, changed=(0, 1)), RIGHT[1], *RIGHT], parameters=("x", "y"))
    assert "double[float32 2 y=1.5]: the call changed its input x, y; inputs" in both.message


def test_a_process_that_ends_is_told_with_the_call_it_ended_in() -> None:
    for count, call, label in ((0, 1, "first"), (1, 2, "second"), (2, 3, "first"), (3, 4, "second")):
        outcomes = [*RIGHT, *RIGHT][:count]
        record = played(ROWS, Played(outcomes, die=died()))
        assert (record.verdict, record.conforms, record.difference) == (Verdict.CRASHED, False, None)
        said = f"double[float32 2]: call {call} of 4, subcase '{label}', the process ended with signal 11"
        assert record.message.split("\n")[0] == said
    late = played(ROWS, Played(RIGHT, die=died(Verdict.TIMED_OUT, "No answer within the limit")))
    assert late.verdict is Verdict.TIMED_OUT
    assert "subcase 'first', no answer within the limit" in late.message


def test_what_was_wrong_before_the_end_weighs_less_than_the_end() -> None:
    record = played(ROWS, Played([returned(2, 5)], die=died()))
    assert record.verdict is Verdict.CRASHED
    assert record.launches == 0
    assert played(ROWS, Played([returned(2, 4, launches=3)], die=died())).launches == 3


def test_a_process_that_cannot_begin() -> None:
    record = played(ROWS, Played([], begin=ImplementationError("no module played")))
    assert (record.verdict, record.message) == (
        Verdict.ERROR,
        f"double[float32]: no module played\n  executor host · {REPLAY}",
    )
    dead = played(ROWS, Played([], begin=died(message="It does not start")))
    assert (dead.verdict, dead.message.split("\n")[0]) == (Verdict.CRASHED, "double[float32]: It does not start")


def test_whoever_stops_the_judge_finds_the_process_ended() -> None:
    made = Played(RIGHT[:1], die=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        played(ROWS, made)
    assert made.said == ["ended"]


def test_what_cannot_be_judged_at_all() -> None:
    none = played([], [])
    assert (none.verdict, none.subcases) == (Verdict.NOT_RUN, 0)
    assert "Expected a kind that makes subcases but it made none" in none.message
    made = Played([])
    made.operations = ("half",)
    assert played(ROWS, made).verdict is Verdict.UNSUPPORTED
    assert "It has no function double" in played(ROWS, made).message
    assert played(ROWS, [], without=["right"]).verdict is Verdict.NOT_RUN


def test_a_record_names_the_relaxations_that_were_needed_in_the_contracts_order() -> None:
    tiny = np.float32(1e-40)
    rows = [subcase(tiny, 1, label="tiny"), subcase(np.nan, 1, label="nan")]
    outcomes = [returned(0, 2), of(-np.array([np.nan, -2], np.float32))] * 2
    for order in (("denormal-flush", "nan-any"), ("nan-any", "denormal-flush")):
        record = played(rows, outcomes, relaxations=order)
        assert (record.verdict, record.relaxations) == (Verdict.SAME_VALUE, list(order))
    kept = Played(outcomes)
    kept.environment = {"executor": {"name": "host", "f32_denormals": "kept"}}
    assert played(rows, kept, relaxations=("denormal-flush", "nan-any")).verdict is Verdict.DIFFERS


def test_a_subcase_that_oracles_disagree_on_does_not_hide_the_others() -> None:
    shelf = Shelf(right=lambda x: x + x, other=lambda x: np.where(x == 3, x, x + x))
    both = (shelf.reference("right"), shelf.reference("other"))
    record = played(ROWS, [*RIGHT, *RIGHT], both, shelf=shelf)
    assert record.verdict is Verdict.ORACLES_DISAGREE
    assert record.message.startswith("double[float32 2]: Oracles right 1.0 and other 1.0 disagree at [0]")
    wrong = played(ROWS, [returned(2, 5), RIGHT[1]] * 2, both, shelf=shelf)
    assert wrong.verdict is Verdict.ORACLES_DISAGREE


def test_tensors_of_a_case_that_differs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, Exhibit]] = []

    def keep(name: str, exhibit: Exhibit) -> Kept:
        shown.append((name, exhibit))
        return Kept("tensors/a.safetensors", "ab" * 32)

    outcomes = [RIGHT[0], returned(6, 9), RIGHT[0], returned(6, 7)]
    record = played(ROWS, outcomes, keep=keep)
    assert (record.tensors, record.tensors_sha256) == ("tensors/a.safetensors", "ab" * 32)
    ((name, exhibit),) = shown
    assert name == record.id
    assert exhibit.texts == {
        "case": record.id, "subcase": "second", "oracle": "right 1.0", "executor": "host", "implementation": "played",
    }  # fmt: skip
    assert [None if one is None else one.tolist() for one in exhibit.rounds] == [[6, 9], [6, 7]]
    assert [(oracle, want.tolist()) for oracle, want in exhibit.wants] == [("right 1.0", [6, 8])]
    assert (exhibit.subcase.label, exhibit.at.tolist()) == ("second", [1])
    built_in = Played(outcomes)
    built_in.target = None
    played(ROWS, built_in, keep=keep)
    assert shown[1][1].texts["implementation"] == "mlx_assay.impl"
    # What conforms, and what is no difference, has none.
    assert played(ROWS, [*RIGHT, *RIGHT], keep=keep).tensors == ""
    assert played(ROWS, Played([], die=died()), keep=keep).tensors == ""
    assert len(shown) == 2


@pytest.mark.parametrize("error", [OSError("disk full"), ValueError("a row too large"), TypeError("no such dtype")])
def test_tensors_that_cannot_be_kept_are_told_of(error: Exception) -> None:
    def keep(name: str, exhibit: Exhibit) -> Kept:
        raise error

    record = played(ROWS, [returned(2, 5), RIGHT[1]] * 2, keep=keep)
    assert (record.verdict, record.tensors) == (Verdict.DIFFERS, "")
    assert record.message.endswith(f"{REPLAY}\n  tensors are not kept: {error}")
