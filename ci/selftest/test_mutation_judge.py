"""Faults in what judges: where they are made, which copy holds them, and what counts as noticed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.mutation import equivalents
from mlx_assay.conformance.mutation.judge import campaign, faults
from mlx_assay.conformance.mutation.judge.campaign import Examiner
from mlx_assay.conformance.mutation.judge.operators import OPERATORS
from mlx_assay.conformance.mutation.judge.server import NO_TESTS
from mlx_assay.conformance.mutation.judge.texts import AREAS, TEXTS
from mlx_assay.conformance.mutation.judge.workbench import Workbench, WorkbenchError
from mlx_assay.conformance.mutation.launchers import Module
from mlx_assay.conformance.mutation.ruling import COMPILATION, KILLED, SURVIVED, TEST

SELFTESTS = Path(__file__).parent

TEXT = """
def worst(apart, allowed):
    if apart is None:
        return None
    passed = (apart >= 0).all() and not apart.any()
    passed[allowed] = -1
    passed |= 3
    if passed:
        yield Verdict.DIFFERS
"""
CHANGED = {
    "judge-other": ["(apart >= 0).any()", "apart.all()", "yield Verdict.SAME_BITS"],
    "judge-assignment-dropped": ["pass\n    passed |= 3", "passed[allowed] = -1\n    pass"],
    "judge-inversion-dropped": [" and apart.any()", "passed[allowed] = 1\n"],
    "judge-reason-dropped": ["yield from ()"],
    "judge-early-return-dropped": ["if False:\n        return None"],
    "judge-constant": ["(apart >= 1)", "passed |= 4"],
    "judge-comparison": ["apart is not None", "(apart > 0)"],
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_operator_makes_its_faults(name: str) -> None:
    (operator,) = (one for one in OPERATORS if one.name == name)
    changed = [edit.apply(TEXT) for edit in operator.edits(Module(TEXT), TEXT)]
    assert len(changed) == len(CHANGED[name])
    for text, words in zip(changed, CHANGED[name], strict=True):
        assert words in text


def test_a_function_of_cpp_ends_at_its_brace() -> None:
    text = "\nint one() {\n  if (x) { y(); }\n}\nint two() {\n}\n"
    start, end = faults.part(text, "int one() {")
    assert text[start:end] == "int one() {\n  if (x) { y(); }\n}"
    with pytest.raises(ValueError, match="once but it stands there 0 times"):
        faults.part(text, "int three() {")


def test_there_are_enough_faults_in_every_area() -> None:
    found = faults.all_faults()
    counts = {area: sum(fault.operation == area for fault in found.values()) for area in AREAS}
    assert min(counts.values()) >= 20, counts
    assert sum(counts.values()) >= 100
    assert all(fault.text != fault.source.text for fault in found.values())


def test_every_text_names_self_tests_that_are_there() -> None:
    assert [test for text in TEXTS for test in text.tests if not (SELFTESTS / test).exists()] == []
    learned = campaign.learned()
    assert set(learned) <= {text.name for text in TEXTS}
    told = {test.partition("::")[0] for counts in learned.values() for test in counts}
    assert [test for test in told if not (SELFTESTS.parents[1] / test).exists()] == []


def test_a_file_can_be_asked_for_alone() -> None:
    assert len({text.stem for text in TEXTS} | set(AREAS)) == len(TEXTS) + len(AREAS)
    for text in TEXTS:
        assert {one.source.name for one in faults.chosen([text.stem], [], None)} == {text.name}


def test_no_reason_is_stale() -> None:
    equivalents.check(equivalents.by_id(faults.reasons()), faults.all_faults().keys())


def test_a_sample_takes_every_text_in_turn() -> None:
    every = list(faults.all_faults().values())
    few = faults.sampled(every, len(TEXTS), 1)
    assert len({fault.source.name for fault in few}) == len(few) == len(TEXTS)
    assert few == faults.sampled(every, len(TEXTS), 1)
    assert few != faults.sampled(every, len(TEXTS), 2)
    assert faults.sampled(every, 10**6, 0) == every


class Bench:
    """Says what it was told to, first with the fault and then without."""

    def __init__(self, *said: tuple[str, str]) -> None:
        self.said = list(said)
        self.asked: list[list[str]] = []
        self.text = ""

    @contextmanager
    def changed(self, name: str, text: str) -> Iterator[None]:
        self.text = text
        yield

    def noticed(self, tests: Sequence[str], first: Sequence[str], seconds: float, fresh: bool) -> tuple[str, str]:
        self.asked.append(list(tests))
        return self.said.pop(0)


NOTICED = "ci/selftest/test_compare.py::test_one"


def examiner(bench: Bench) -> Examiner:
    return Examiner(bench, 1.0, {}, set())  # type: ignore[arg-type]


def fault(name: str) -> faults.Mutant:
    return next(one for one in faults.all_faults().values() if one.source.name == name)


def test_a_test_kills_where_it_passes_without_the_fault() -> None:
    bench = Bench((NOTICED, ""), ("", ""), (NOTICED, ""))
    asked = examiner(bench)
    planted = fault("conformance/judging/ulp.py")
    ruling = asked.rule(planted)
    assert (ruling.outcome, ruling.killed_by) == (KILLED, f"{TEST}: {NOTICED}")
    assert bench.text == planted.text
    # What is sound is asked once.
    asked.rule(planted)
    assert bench.asked[1] == [NOTICED]
    assert bench.asked[0] == bench.asked[2]
    assert len(bench.asked) == 3


def test_a_test_that_fails_anyhow_ends_the_campaign() -> None:
    bench = Bench((NOTICED, ""), (NOTICED, "assert 1 == 2"))
    with pytest.raises(WorkbenchError, match=r"passes without a fault but .*test_one fails: assert 1 == 2"):
        examiner(bench).rule(fault("conformance/judging/ulp.py"))


def test_nothing_that_fails_is_a_survivor_and_no_test_at_all_an_error() -> None:
    assert examiner(Bench(("", ""))).rule(fault("conformance/judging/ulp.py")).outcome == SURVIVED
    with pytest.raises(WorkbenchError, match="but they hold none"):
        examiner(Bench((NO_TESTS, ""))).rule(fault("conformance/judging/ulp.py"))


def test_a_runtime_that_does_not_compile_is_killed_by_compilation() -> None:
    bench = Bench(("ci/selftest/test_executor_numbers.py::test_x", "E  CompilationError: expected ;"), ("", ""))
    ruling = examiner(bench).rule(fault("impl/executors/runtime/half.cpp"))
    assert ruling.killed_by.startswith(f"{COMPILATION}: ")


def test_a_copy_is_what_tests_import_and_is_as_before_afterwards(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    try:
        name = "conformance/judging/ulp.py"
        before = (bench.root / name).read_text()
        said = "def infinity(dtype: np.dtype[Any]) -> int:"
        tests = ["ci/selftest/test_compare.py::test_nan_and_denormals_are_told_from_bits_as_numpy_tells_them"]
        with bench.changed(name, before.replace("magnitudes(array) > infinity", "magnitudes(array) >= infinity")):
            assert said in (bench.root / name).read_text()
            by, text = bench.noticed(tests, (), 120.0, False)
        assert by.startswith(tests[0])
        assert "assert" in text
        assert (bench.root / name).read_text() == before
        assert bench.noticed(tests, (), 120.0, False) == ("", "")
        assert bench.noticed(["ci/selftest/test_compare.py::test_none"], (), 120.0, False)[0]
        assert bench.noticed(tests, (), 0.0, False)[0] == "more than 0 s"
    finally:
        bench.close()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--judge", "softmax"], 2, "Expected a part of what judges, one of comparison, judge, codec, gate, executor"),
        (["--judge", "--operator", "typo"], 2, "Expected an operator but got 'typo': there are judge-"),
        (
            ["--judge", "gate", "--operator", "barrier-dropped"],
            3,
            "barrier-dropped finds no place in gate: name others",
        ),
        (["--sample", "3"], 2, "Expected --sample with --judge"),
        (["--judge", "--changed-since", "no-such-commit"], 2, "Expected a commit of the repository"),
    ],
)
def test_a_choice_that_cannot_be_meant(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutate", *arguments]) == code
    assert words in capsys.readouterr().err


def test_who_killed_most_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "killers.json"
    path.write_text('{"old.py": ["a::b"]}')
    monkeypatch.setattr(campaign, "_path", lambda: path)
    kills = [
        ("new.py", "test: x::two"),
        ("new.py", "test: x::two"),
        ("new.py", "test: x::one"),
        ("new.py", "test: 3 s"),
    ]
    campaign.learn(kills)
    assert json.loads(path.read_text()) == {"old.py": ["a::b"], "new.py": ["x::two", "x::one"]}
    assert [test for test, _ in campaign.learned()["new.py"].most_common()] == ["x::two", "x::one"]


def test_a_sample_of_faults_is_noticed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What the nightly run does with all of them; a second campaign keeps what the first has found."""
    asked = ["mutate", "--judge", "comparison", "-n", "1", "--sample", "12", "--json", str(tmp_path / "judge.json")]
    assert main(asked) == 0
    assert "12 mutants: 12 killed (0 by a case, 12 by a test," in capsys.readouterr().out
    assert main([*asked, "--resume", str(tmp_path / "judge.json")]) == 0
    said = capsys.readouterr().out
    assert "12 of 12 rulings of the earlier report are kept" in said
    assert "12 mutants: 12 killed (0 by a case, 12 by a test," in said
