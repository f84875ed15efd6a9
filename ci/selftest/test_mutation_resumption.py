"""A campaign that goes on from an earlier report: what is kept of it, and what has to be ruled on anew."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.mutation import report, resumption
from mlx_assay.conformance.mutation.judge import workbench
from mlx_assay.conformance.mutation.judge.faults import all_faults
from mlx_assay.conformance.mutation.judge.texts import TEXTS
from mlx_assay.conformance.mutation.mutant import Mutant
from mlx_assay.conformance.mutation.ruling import EQUIVALENT, KILLED, SURVIVED, Ruling
from mlx_assay.conformance.verbs import mutate

TEXT = "conformance/judging/ulp.py"
FAULTS = [one for one in all_faults().values() if one.source.name == TEXT][:6]
FIRST, SECOND = "ci/selftest/test_a.py", "ci/selftest/test_b.py"
BEFORE = {FIRST: "1", SECOND: "2"}
RULINGS = [
    Ruling(FAULTS[0].id, KILLED, f"test: {FIRST}::test_one[a: b]"),
    Ruling(FAULTS[1].id, KILLED, f"test: {SECOND}::test_two"),
    Ruling(FAULTS[2].id, KILLED, "test: the process ended"),
    Ruling(FAULTS[3].id, KILLED, "test: more than 300 s"),
    Ruling(FAULTS[4].id, SURVIVED),
    Ruling(FAULTS[5].id, EQUIVALENT, reason="It changes nothing."),
]


def earlier(rulings: list[Ruling] = RULINGS, mutants: list[Mutant] = FAULTS) -> report.Campaign:
    return report.campaign(
        mutants, rulings, complete=True, seconds=1.0, workers=1, ground="g", tests={mutants[0].source.name: BEFORE}
    )


def kept(now: dict[str, str], found: report.Campaign | None = None, ground: str = "g") -> list[int]:
    """Places of the rulings that are kept."""
    said = resumption.kept(found or earlier(), FAULTS, ground, {TEXT: now})
    assert all(one in RULINGS for one in said)
    return [RULINGS.index(one) for one in said]


def test_a_ruling_lasts_as_long_as_what_ruled() -> None:
    assert kept(BEFORE) == [0, 1, 2, 4]
    # A test that killed is enough; who lived, or died of no test that is named, was met by all of them.
    assert kept({**BEFORE, SECOND: "3"}) == [0]
    assert kept({**BEFORE, "ci/selftest/test_c.py": "3"}) == [0, 1]
    assert kept({SECOND: "2"}) == [1]


def test_nothing_lasts_on_another_ground() -> None:
    assert kept(BEFORE, ground="h") == []
    assert kept(BEFORE, msgspec.structs.replace(earlier(), ground=""), ground="") == []


def test_a_text_that_has_changed_is_ruled_on_anew() -> None:
    assert kept(BEFORE, msgspec.structs.replace(earlier(), sources={TEXT: "0" * 64})) == []


def test_an_equivalent_lasts_where_no_file_of_reasons_said_so() -> None:
    said = resumption.kept(earlier(), FAULTS, "g", lasting=["It changes"])
    assert [one.id for one in said if one.outcome == EQUIVALENT] == [FAULTS[5].id]
    assert [one for one in resumption.kept(earlier(), FAULTS, "g") if one.outcome == EQUIVALENT] == []


def test_the_ground_is_of_every_file_but_those_that_decide_nothing(tmp_path: Path) -> None:
    (tmp_path / "one" / "__pycache__").mkdir(parents=True)
    (tmp_path / "one" / "a.py").write_text("a = 1\n")
    (tmp_path / "one" / "reasons.toml").write_text("")
    (tmp_path / "two.md").write_text("two\n")

    def ground() -> str:
        parts = {"one": tmp_path / "one", "two.md": tmp_path / "two.md"}
        return resumption.ground(parts, {"one/reasons.toml"})

    before = ground()
    (tmp_path / "one" / "reasons.toml").write_text("more\n")
    (tmp_path / "one" / "__pycache__" / "a.pyc").write_bytes(b"1")
    assert ground() == before
    (tmp_path / "one" / "a.py").write_text("a = 2\n")
    assert ground() != before
    (tmp_path / "one" / "a.py").write_text("a = 1\n")
    assert ground() == before
    (tmp_path / "two.md").write_text("three\n")
    assert ground() != before


def test_tests_are_what_they_import_too(tmp_path: Path) -> None:
    for name, text in {"test_a": "import far\n", "far": "from near import x\n", "near": "x = 1\n", "other": ""}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.toml").write_text("[[row]]\n")

    def digest() -> str:
        return resumption.digest_of_tests(tmp_path, "test_a.py")

    found = [digest()]
    (tmp_path / "other.py").write_text("y = 1\n")
    assert digest() == found[0]
    for name in ("near", "far", "test_a", "conftest"):
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("# more\n")
        found.append(digest())
    (tmp_path / "rows" / "a.toml").write_text("[[row]]\n[[row]]\n")
    assert digest() == found[-1]
    (tmp_path / "near.py").write_text('DATA = "rows"\n')
    found.append(digest())
    (tmp_path / "rows" / "a.toml").write_text("[[row]]\n")
    found.append(digest())
    assert len(set(found)) == len(found)


def test_what_the_campaign_alone_reads_is_no_ground() -> None:
    root = workbench.repository()
    assert [name for name in workbench.UNDECIDING if not (root / name).is_file()] == []
    assert (root / resumption.REASONS).is_file()
    tests = {root / "ci" / "selftest" / test for text in TEXTS for test in text.tests}
    assert [test for test in tests if "mutants.md" in test.read_text() or "mutation.judge" in test.read_text()] == []
    digests = workbench.digests([TEXT])[TEXT]
    assert set(digests) == {f"ci/selftest/{name}" for name in ("test_compare_edges.py", "test_compare.py")}
    assert len(set(digests.values())) == len(digests)


def test_a_report_is_there_before_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "mutants.json"

    def reported(rulings: list[Ruling], complete: bool) -> report.Campaign:
        return report.campaign(FAULTS, rulings, complete=complete, seconds=1.0, workers=1, ground="g")

    progress = mutate.Progress(target, reported, RULINGS[:1])  # type: ignore[arg-type]
    progress.told(RULINGS[1], 2, len(FAULTS))
    assert not target.exists()
    monkeypatch.setattr(mutate, "SAVE_SECONDS", -1.0)
    progress.told(RULINGS[4], 3, len(FAULTS))
    found = report.decode(target.read_bytes())
    assert not found.complete
    assert [row.id for row in found.mutants] == [RULINGS[place].id for place in (0, 1, 4)]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("content", [None, "", "{}"])
def test_what_is_no_report_cannot_be_resumed(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mutants.json"
    if content is not None:
        path.write_text(content)
    for more in ([], ["--judge"]):
        assert main(["mutate", *more, "--resume", str(path)]) == 2
        assert "Expected a report of mlx-assay mutate --json to resume" in capsys.readouterr().err
    assert main(["mutate", "--tests", "pytest tests", "--resume", str(path)]) == 2
    assert "Expected --resume without --implementation and --tests" in capsys.readouterr().err
