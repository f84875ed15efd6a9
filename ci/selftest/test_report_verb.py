"""The verb `report`: where its renderings go, what they say of the same cases, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec
import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.commands.rendering import FORMATS
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.rendering.ctrf import status
from mlx_assay.conformance.rendering.location import Location, location
from mlx_assay.conformance.rendering.overview import Overview
from mlx_assay.conformance.reporting.report import encode
from mlx_assay.conformance.verbs.report import MAKERS
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from report_rendering import report

OF = report(24, 3)
FAILING = [case.id for case in OF.cases if not case.conforms]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "report.json"
    path.write_bytes(encode(OF))
    return str(path)


def test_every_format_has_a_maker() -> None:
    assert FORMATS.keys() == MAKERS.keys()


def test_all_renderings_at_once(file: str, tmp_path: Path) -> None:
    targets = {name: tmp_path / f"made.{name}" for name in FORMATS}
    asked = [word for name, target in targets.items() for word in (f"--{name}", str(target))]
    assert main(["report", file, *asked]) == EXIT_CONFORMS
    made = {name: target.read_text(encoding="utf-8") for name, target in targets.items()}
    assert made.pop("markdown").count("### differs: ") == len(FAILING)
    assert [name for name, text in made.items() for case in FAILING if plain(case) not in plain(text)] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["report.json", *(f"made.{n}" for n in FORMATS)])


def plain(text: str) -> str:
    return text.replace("&amp;", "&")


def test_text_is_shown_where_nothing_is_asked(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file]) == EXIT_CONFORMS
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "differs: All 24 cases ran; 3 do not conform."
    assert "4064 to 4095" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(("name", "begins"), [("html", "<!doctype html>"), ("ctrf", "{"), ("markdown", "# ")])
def test_a_rendering_on_standard_output(file: str, name: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", file, f"--{name}", "-"]) == EXIT_CONFORMS
    assert capsys.readouterr().out.startswith(begins)


def test_the_summary_is_appended_within_its_limit(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n" + "x" * (2**20 - 3000), encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["report", file, "--summary"]) == EXIT_CONFORMS
    content = summary.read_text(encoding="utf-8")
    assert content.startswith("before\n")
    assert "# ❌ differs" in content
    assert "more cases that do not conform are left out here" in content
    assert summary.stat().st_size <= 2**20
    assert capsys.readouterr().out == ""


def test_without_a_summary_to_write_it_says_so(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert main(["report", file, "--summary"]) == EXIT_CONFORMS
    assert "GITHUB_STEP_SUMMARY is not set" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--html", "{folder}/a", "--ctrf", "{folder}/a"], "a file of its own for --ctrf"),
        (["--html", "{file}"], "which is the report"),
        (["--html", "{folder}"], "the folder"),
        (["--html", "-", "--markdown", "-"], "one rendering at most on standard output"),
        (["--html", "/dev/null"], "a device"),
        (["--html", "{folder}/absent/a"], "a folder that can be written"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    file: str, tmp_path: Path, asked: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.format(folder=tmp_path, file=file) for word in asked]
    assert main(["report", file, *words]) == EXIT_USAGE
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_what_is_no_report_is_told_with_its_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    assert main(["report", str(tmp_path / "other.json")]) == EXIT_INCOMPLETE
    assert main(["report", str(tmp_path / "absent.json")]) == EXIT_USAGE
    assert "Traceback" not in capsys.readouterr().err


def case(**fields: object) -> Record:
    return msgspec.structs.replace(OF.cases[0], **fields)


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (
            'it printed:\n  File "/p/mine/kernels.py", line 7 in f\n  File "/p/other.py", line 9',
            ("/p/mine/kernels.py", 7),
        ),
        ('  File "kernels.py", line 3, in f\n  File "/x/site-packages/kernels.py", line 4', ("kernels.py", 3)),
        ("argmax.metal:12:3: error: use of undeclared identifier", ("argmax.metal", 12)),
        ('  File "/p/other.py", line 9, in g', None),
        ("got 1 want 2", None),
    ],
)
def test_the_line_of_the_implementation_is_found(message: str, found: tuple[str, int] | None) -> None:
    module = "mine.kernels" if "mine" in message else "kernels"
    assert location(case(message=message), module) == (Location(*found) if found else None)


def test_a_path_below_the_checkout_is_relative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/home/runner/work")
    message = '  File "/home/runner/work/src/kernels.py", line 3, in f'
    assert location(case(message=message), "kernels:fast") == Location("src/kernels.py", 3)


@pytest.mark.parametrize("verdict", Verdict)
def test_ctrf_takes_no_case_that_does_not_conform_for_passed(verdict: Verdict) -> None:
    assert status(case(verdict=verdict, conforms=False)) in ("failed", "skipped", "other")


def test_the_first_cases_told_are_of_different_kinds() -> None:
    names = ["a/bfloat16/x?n=1", "a/bfloat16/x?n=2", "a/float16/x?n=1", "a/float16/y?n=1", "b/float16/x?n=1"]
    cases = [case(id=name, difference=None) for name in names]
    overview = Overview.of(msgspec.structs.replace(OF, cases=cases))
    assert [record.id for record in overview.varied] == [names[0], names[3], names[4], names[1], names[2]]


def test_sarif_puts_a_crash_at_its_line(tmp_path: Path) -> None:
    message = '  File "my_kernels.py", line 3, in f'
    crashed = case(verdict=Verdict.CRASHED, message=message, difference=None)
    of = msgspec.structs.replace(OF, cases=[crashed, *OF.cases[1:]])
    (tmp_path / "report.json").write_bytes(encode(of))
    assert main(["report", str(tmp_path / "report.json"), "--sarif", str(tmp_path / "a.sarif")]) == EXIT_CONFORMS
    results = json.loads((tmp_path / "a.sarif").read_text())["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "my_kernels.py", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3},
    }
    assert "physicalLocation" not in results[1]["locations"][0]
