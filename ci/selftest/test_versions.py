"""What drifts between releases of MLX, from synthetic answers: differences, rules, faults, verdicts, renderings."""

from __future__ import annotations

import json
from io import StringIO
from itertools import permutations
from pathlib import Path
from typing import Any

import jsonschema
import ml_dtypes
import numpy as np
import pytest
from rich.console import Console

from mlx_assay.conformance.contract import Rule
from mlx_assay.conformance.query import QueryError
from mlx_assay.conformance.selection import NothingSelected
from mlx_assay.conformance.versions import comparison, doors, report
from mlx_assay.conformance.versions.drift import drifts
from mlx_assay.conformance.versions.exchange import Answer
from mlx_assay.conformance.versions.inputs import EACH, ELEMENTS, OPERATIONS, Input, gathered
from mlx_assay.conformance.versions.release import crossed, order, sequence
from mlx_assay.conformance.versions.rendering import markdown, show
from mlx_assay.conformance.versions.rules import STOCK, dated
from mlx_assay.fixtures.case import Case

NAN, INF = np.nan, np.inf
ROOT = Path(__file__).parents[2]
BF16 = np.dtype(ml_dtypes.bfloat16)


def asked(operation: str, *arrays: Any, **numbers: float) -> Input:
    """An input of float32 arrays, named as the operation names them."""
    given = "logits" in operation or operation in {"normalized_argmax", "argmax_given", "logsumexp"}
    names = ("logits", "lse") if given else ("x", "y")
    made = {
        name: np.asarray(array, getattr(array, "dtype", np.float32)) for name, array in zip(names, arrays, strict=False)
    }
    return Input(operation, Case("rows", str(next(iter(made.values())).dtype), "made"), "", made, numbers)


def result(values: Any, dtype: Any = np.uint32, **more: Any) -> Answer:
    return Answer({"result": np.asarray(values, dtype), **more})


def compared(
    given: Input, old: Answer, new: Answer, releases: tuple[str, str] = ("0.32.2", "0.32.4"), door: Any = "cpu"
):
    """The one drift between two answers, None where there is none."""
    found, faults = drifts([given], door, dict(zip(releases, ([old], [new]), strict=True)))
    assert not faults
    assert len(found) <= 1
    return found[0] if found else None


def numbers(drift: report.Drift | None) -> list[int]:
    assert drift is not None
    return [each.rule for each in drift.explanations]


def test_releases_are_ordered_by_number() -> None:
    assert sequence(["0.32.4", "0.9.10", "0.32.4", "0.32.10"]) == ["0.9.10", "0.32.4", "0.32.10"]


@pytest.mark.parametrize(
    "text", ["", "main", "0.32", "0.32.4.1", "0.32.4rc1", " 0.32.4", "0.32.4\n", "9" * 99 + ".1.1"]
)
def test_what_is_no_release_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a release of MLX"):
        order(text)


@pytest.mark.parametrize(
    ("old", "new", "since", "until"),
    [
        ("0.32.2", "0.32.3", True, True),
        ("0.30.6", "0.33.0", True, True),
        ("0.30.6", "0.32.2", False, False),
        ("0.32.3", "0.32.4", False, False),
    ],
)
def test_a_rule_changes_between_the_releases_that_it_names(old: str, new: str, since: bool, until: bool) -> None:
    assert crossed(Rule(1, "", "", since="0.32.3"), old, new) == since
    assert crossed(Rule(1, "", "", until="0.32.2"), old, new) == until
    assert not crossed(Rule(1, "", ""), old, new)


NAN_AMID = asked("argmax", [[3, NAN, 1, 5]])


def test_the_nan_rule_of_argmax_is_found_and_explained() -> None:
    drift = compared(NAN_AMID, result([3]), result([1]))
    assert drift is not None
    assert (drift.inputs, drift.compared, drift.dtype) == (1, 1, "float32")
    assert (drift.example.old_bits, drift.example.new_bits) == ("0x00000003", "0x00000001")
    assert drift.example.place == [0]
    assert [(each.contract, each.rule) for each in drift.explanations] == [("argmax_given", 4), ("argmax_given", 5)]


@pytest.mark.parametrize(
    ("given", "old", "new", "releases"),
    [
        (NAN_AMID, [3], [1], ("0.31.2", "0.32.2")),
        (NAN_AMID, [3], [1], ("0.32.3", "0.32.4")),
        (NAN_AMID, [0], [1], ("0.32.2", "0.32.4")),
        (NAN_AMID, [3], [2], ("0.32.2", "0.32.4")),
        (NAN_AMID, [1], [3], ("0.32.2", "0.32.4")),
        (asked("argmax", [[3, 2, 1, 5]]), [3], [1], ("0.32.2", "0.32.4")),
        (asked("argmax", [[3, NAN, 1, 5], [1, 2, 3, 4]]), [3, 3], [1, 0], ("0.32.2", "0.32.4")),
        (asked("argmax", [[NAN, 1, 2]]), [3], [0], ("0.32.2", "0.32.4")),
        (asked("argmax", [[NAN, 1, 2]]), [2], [1], ("0.32.2", "0.32.4")),
    ],
)
def test_what_the_nan_rule_does_not_say_is_not_explained(given: Input, old: Any, new: Any, releases: Any) -> None:
    assert numbers(compared(given, result(old), result(new), releases)) == []


def test_a_leading_nan_is_left_to_the_device_before_the_rule() -> None:
    assert numbers(compared(asked("argmax", [[NAN, 1, 2]]), result([2]), result([0]), door="metal")) == [4, 5]


def test_scores_are_judged_with_the_lse_of_each_release() -> None:
    given = asked("normalized_argmax", [[0, INF, INF, 1]])
    lse = np.full((1, 1), INF, np.float32)
    assert numbers(compared(given, result([0], lse=lse), result([1], lse=lse))) == [4, 5]
    finite = np.ones((1, 1), np.float32)
    assert numbers(compared(given, result([0], lse=finite), result([1], lse=finite))) == []


def test_another_lse_is_no_matter_of_the_nan_rule() -> None:
    """Each id is right by its release's lse, whose rounding makes a tie; no score is NaN."""
    given = asked("normalized_argmax", [[0, 1e-8]])
    one, zero = np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32)
    assert numbers(compared(given, result([0], lse=one), result([1], lse=zero))) == []


def test_a_given_lse_makes_nan_scores() -> None:
    given = asked("argmax_given", [[-INF, INF, 0, 0]], [[INF]])
    assert numbers(compared(given, result([0]), result([1]))) == [4, 5]


def test_denormals_count_as_zeros_on_metal_alone() -> None:
    given = asked("argmax", [[0, 1e-40, NAN]])
    assert numbers(compared(given, result([0]), result([2]), door="metal")) == [4, 5]
    assert numbers(compared(given, result([0]), result([2]), door="cpu")) == []


def test_a_compiled_cap_is_explained_by_its_digits() -> None:
    given = asked("compiled_logit_softcap", [[1.0]], cap=1 / 3)
    exact, printed = np.array([[0.25]], np.float32), np.array([[0.125]], np.float32)
    sides = {"exact": exact, "printed": printed}
    old, new = Answer({"result": printed, **sides}), Answer({"result": exact, **sides})
    assert numbers(compared(given, old, new)) == [11, 12]
    assert numbers(compared(given, new, old)) == []


def test_wide_sums_of_halves_are_explained_on_the_cpu() -> None:
    ones = np.ones((1, 70000), BF16)
    given = asked("sum_rows", ones)
    narrow, wide = result([256], BF16), result([70144], BF16)
    assert numbers(compared(given, narrow, wide)) == [1, 2]
    assert numbers(compared(given, narrow, wide, door="metal")) == []
    assert numbers(compared(given, wide, narrow)) == []
    assert numbers(compared(given, narrow, wide, ("0.32.3", "0.32.4"))) == []
    assert numbers(compared(asked("sum_all", [[1, 2]]), result(3, np.float32), result(4, np.float32))) == []


@pytest.mark.parametrize(
    ("operation", "old", "new", "drifted"),
    [
        ("tanh", [0.0], [-0.0], True),
        ("tanh", [1.0], [1.0], False),
        (
            "tanh",
            np.array([0x7FC00000], np.uint32).view(np.float32),
            np.array([0xFFC00000], np.uint32).view(np.float32),
            True,
        ),
        ("logit_softcap", [NAN], -np.array([NAN], np.float32), False),
        ("logit_softcap", [NAN], [1.0], True),
        ("logit_softcap", [0.0], [-0.0], True),
        ("exp", [], [], False),
    ],
)
def test_encodings_are_compared(operation: str, old: Any, new: Any, drifted: bool) -> None:
    drift = compared(asked(operation, [1.0]), result(old, np.float32), result(new, np.float32))
    assert (drift is not None) == drifted


def test_other_shapes_dtypes_and_errors_are_drift() -> None:
    given = asked("tanh", [1.0])
    sides = [result([1], np.float32), result([[1]], np.float32), result([1], np.float16), Answer({}, "ValueError: no")]
    for old, new in permutations(sides, 2):
        assert compared(given, old, new) is not None
    assert compared(given, sides[0], result([1], np.float32)) is None
    drift = compared(given, sides[0], sides[3])
    assert drift is not None
    assert (drift.example.old, drift.example.new, drift.example.place) == ("float32 [1]", "ValueError: no", [])


def test_what_raises_everywhere_is_no_agreement() -> None:
    answers = {"0.32.2": [Answer({}, "TypeError: a")], "0.32.4": [Answer({}, "TypeError: b")]}
    found, faults = drifts([NAN_AMID], "cpu", answers)
    assert not found
    assert [(fault.operation, fault.inputs, fault.message) for fault in faults] == [("argmax", 1, "TypeError: a")]
    assert report.verdict([report.Asked(release="0.32.4", door="cpu", answered=True)], [], faults) == "incomplete"


def test_drifts_are_gathered_by_reason_and_neighbours() -> None:
    inputs = [NAN_AMID, NAN_AMID, asked("argmax", [[1, 2, 3, 4]]), asked("tanh", [1.0])]
    old = [result([3]), result([3]), result([3]), None]
    new = [result([1]), result([1]), result([2]), None]
    found, _ = drifts(inputs, "metal", {"0.31.2": old, "0.32.2": old, "0.32.4": new})
    assert [(drift.old_release, drift.inputs, drift.compared, numbers(drift)) for drift in found] == [
        ("0.32.2", 2, 3, [4, 5]),
        ("0.32.2", 1, 3, []),
    ]


def test_inputs_are_distinct_bounded_and_cover_every_operation() -> None:
    inputs = gathered()
    assert {given.operation for given in inputs} == set(OPERATIONS)
    assert len({given.key for given in inputs}) == len(inputs)
    assert all(array.size <= ELEMENTS for given in inputs for array in given.arrays.values())
    of_cases: dict[tuple[str, str], int] = {}
    for given in inputs:
        assert all(array.flags.c_contiguous for array in given.arrays.values())
        if given.case.operation not in ("rows", "matrices"):
            place = given.operation, given.dtype
            of_cases[place] = of_cases.get(place, 0) + 1
    assert max(of_cases.values()) <= EACH


def test_queries_choose_inputs() -> None:
    assert {given.operation for given in gathered(["argmax/float32/nan-amid"])} == {"argmax"}
    assert {given.dtype for given in gathered(["rows/bfloat16/*"])} == {"bfloat16"}
    with pytest.raises(QueryError, match="Expected an operation"):
        gathered(["argmix/*"])
    with pytest.raises(NothingSelected, match="matches no input"):
        gathered(["argmax/float32/no-such-kind"])


def test_every_dated_rule_is_documented() -> None:
    text = " ".join((ROOT / "docs/versions.md").read_text().split())
    told = [(subject, rule) for subject, rules in dated().items() for rule in rules]
    assert {subject for subject, _ in told} >= {"normalized_argmax", "compiled_logit_softcap", *STOCK}
    for subject, rule in told:
        releases = f"from {rule.since}" if rule.since else f"to {rule.until}"
        assert f"| {subject} {rule.number} | {releases} | {rule.text} | {rule.source} |" in text


def made(
    monkeypatch: pytest.MonkeyPatch, cpu: dict[str, Any], metal: dict[str, Any] | None = None
) -> report.VersionsReport:
    """The report of doors that answer one input as given; an exception is raised."""

    def door(answers: dict[str, Any]) -> Any:
        def ask(release: str, inputs: Any, tell: Any) -> Any:
            if isinstance(answers[release], Exception):
                raise answers[release]
            return [answers[release]] * len(inputs)

        return ask

    known = {"cpu": door(cpu), **({"metal": door(metal)} if metal else {})}
    monkeypatch.setattr(comparison, "known_doors", lambda: known)
    return comparison.compare(sequence(list(cpu)), list(known), [NAN_AMID], ["argmax"], lambda text: None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answers", "verdict", "code"),
    [
        ({"0.32.2": result([3]), "0.32.4": result([3])}, "same", 0),
        ({"0.32.2": result([3]), "0.32.4": result([1])}, "explained", 0),
        ({"0.32.2": result([3]), "0.32.4": result([2])}, "drifted", 1),
        ({"0.32.2": result([3]), "0.32.4": doors.Shut("no such release")}, "incomplete", 3),
        ({"0.31.2": doors.Shut("gone"), "0.32.2": result([3]), "0.32.4": result([2])}, "drifted", 1),
        ({"0.32.2": Answer({}, "E: x"), "0.32.4": Answer({}, "E: x")}, "incomplete", 3),
    ],
)
def test_the_verdict_and_every_rendering(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], verdict: str, code: int
) -> None:
    done = made(monkeypatch, answers)
    assert (done.verdict, done.exit_code) == (verdict, code)
    jsonschema.validate(json.loads(report.encode(done)), report.schema())
    assert report.decode(report.encode(done)) == done
    for terminal in (True, False):
        console = Console(file=StringIO(), force_terminal=terminal, width=400)
        show(done, console)
        assert f"{verdict}: MLX" in console.file.getvalue()  # type: ignore[attr-defined]
    assert f"{verdict}: MLX" in markdown(done)


def test_the_published_schema_is_that_of_the_structs() -> None:
    published = json.loads(Path(report.__file__).with_name("versions.schema.json").read_text())
    assert published == report.schema()
    jsonschema.Draft202012Validator.check_schema(published)


def test_hostile_text_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    done = made(monkeypatch, {"0.32.2": result([3]), "0.32.4": Answer({}, "E: \x1b[31m|<b>\n[/red] `x`")})
    console = Console(file=StringIO(), width=400)
    show(done, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in shown
    assert "[/red]" in shown
    row = next(line for line in markdown(done).splitlines() if line.startswith("| argmax"))
    assert r"\|\<b\>" in row
