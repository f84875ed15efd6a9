"""The verb `diff`: what is said of two reports, and the exit code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import numpy as np
import pytest
from test_report import record

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.differing import document as documents
from mlx_assay.conformance.differing.comparison import Given, compare
from mlx_assay.conformance.differing.document import schema
from mlx_assay.conformance.differing.outputs import told as told_of
from mlx_assay.conformance.differing.rendering import markdown
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.record import Diagnosis, Difference, Pattern, Place, Record
from mlx_assay.conformance.reporting.report import Report, encode
from mlx_assay.conformance.session import Session
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, EXIT_USAGE, Verdict
from mlx_assay.fixtures.codec import save

PUBLISHED = Path(documents.__file__).with_name("diff.schema.json")
FINE = record(1)
WEAKER = record(1, Verdict.SAME_VALUE)


def differing(number: int = 1, got: str = "0x0001", want: str = "0x0002", count: int = 1, **fields: Any) -> Record:
    known = Difference("a", fields.pop("oracle", "stock-mlx"), count, 9, 1, [Place([0], got, want)], **fields)
    return record(number, Verdict.DIFFERS, difference=known, message=f"got {got} want {want}\n  policy")


def keeping(folder: Path, name: str, **fields: Any) -> Record:
    digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return msgspec.structs.replace(differing(**fields), tensors=name, tensors_sha256=digest)


def report(*records: Record, declared: int | None = None, **options: Any) -> Report:
    session = Session(Options(**options))
    ids = [each.id for each in records]
    session.declare(ids + [record(1000 + extra).id for extra in range((declared or len(ids)) - len(ids))])
    for each in records:
        session.add(msgspec.json.encode(each).decode())
    return session.finish()


def compared(old: Report, new: Report, folder: Path = Path()) -> documents.Difference:
    return compare(Given(folder / "old" / "r.json", old), Given(folder / "new" / "r.json", new))


def told(folder: Path, old: Report, new: Report, *options: str) -> int:
    for name, each in (("old.json", old), ("new.json", new)):
        (folder / name).write_bytes(encode(each))
    return main(["diff", str(folder / "old.json"), str(folder / "new.json"), *options])


@pytest.mark.parametrize(
    ("old", "new", "kind", "verdict"),
    [
        (FINE, differing(), "newly-failing", "worse"),
        (FINE, record(1, Verdict.CRASHED), "newly-failing", "worse"),
        (FINE, record(1, Verdict.SAME_VALUE, conforms=False), "newly-failing", "worse"),
        (differing(), FINE, "newly-passing", "no-worse"),
        (FINE, WEAKER, "other-rung", "no-worse"),
        (WEAKER, FINE, "other-rung", "no-worse"),
        (differing(), record(1, Verdict.CRASHED), "still-failing", "worse"),
        (differing(), differing(got="0x0007"), "still-failing", "worse"),
        (differing(), differing(count=2), "still-failing", "worse"),
        (differing(), differing(want="0x0009"), "still-failing", "no-worse"),
        (record(1, Verdict.ERROR, message="a"), record(1, Verdict.ERROR, message="b"), "still-failing", "no-worse"),
    ],
)
def test_what_is_said_of_a_case(old: Record, new: Record, kind: str, verdict: str) -> None:
    found = compared(report(old, record(2)), report(new, record(2)))
    assert ([change.kind for change in found.changes], found.verdict) == ([kind], verdict)
    assert (found.conforming, found.failing) == (1, 0)


@pytest.mark.parametrize("each", [FINE, WEAKER, differing(), record(1, Verdict.ERROR, message="raised")])
def test_a_report_is_no_worse_than_itself(each: Record) -> None:
    found = compared(report(each), report(each))
    assert (found.changes, found.verdict, found.settings) == ([], "no-worse", [])
    assert found.conforming + found.failing == 1


def test_two_reports_of_one_run_are_told_of() -> None:
    each = report(FINE)
    assert compared(each, each).notes == ["another run: both reports are of the same one"]
    assert compared(each, report(FINE)).notes == []


def test_a_new_case_that_fails_fails_anew_and_one_that_conforms_is_new() -> None:
    found = compared(report(FINE), report(FINE, differing(2), record(3)))
    assert [(change.kind, change.old) for change in found.changes] == [("newly-failing", None), ("new", None)]
    assert found.verdict == "worse"


def test_a_case_that_is_gone_leaves_the_comparison_incomplete() -> None:
    found = compared(report(FINE, record(2)), report(FINE))
    assert ([change.kind for change in found.changes], found.verdict) == (["gone"], "incomplete")
    assert found.reasons == ["1 case is gone"]


@pytest.mark.parametrize(
    "bad",
    [
        report(FINE, declared=2),
        report(),
        report(record(1, missing=["torch"])),
        report(record(1, Verdict.NOT_RUN)),
        msgspec.structs.replace(report(FINE), altered=["judge.py"]),
        msgspec.structs.replace(report(FINE), complete=False, verdict="conforms"),
    ],
)
def test_an_incomplete_report_decides_nothing_whatever_it_says_of_itself(bad: Report) -> None:
    assert compared(bad, report(FINE)).exit_code == EXIT_INCOMPLETE
    assert compared(report(FINE), bad).exit_code == EXIT_INCOMPLETE


def test_a_diagnosis_that_changed_is_told_and_is_no_worse() -> None:
    def diagnosed(text: str) -> Report:
        return report(differing(pattern=Pattern(dtype="float32", shape=[9], diagnoses=[Diagnosis("tile", text, 1)])))

    found = compared(diagnosed("a whole tile"), diagnosed("the tail"))
    assert (found.changes[0].parts, found.changes[0].bits, found.verdict) == (["diagnosis"], "alike", "no-worse")


def test_another_count_under_another_reference_proves_nothing_of_the_bits() -> None:
    found = compared(report(differing(oracle="torch 2.9")), report(differing(oracle="torch 2.13", count=3)))
    assert found.verdict == "no-worse"


@pytest.mark.parametrize(
    ("got", "want", "bits", "parts", "verdict"),
    [
        ([1, 2], [3, 4], "same", [], "no-worse"),
        ([1, 9], [3, 4], "other", ["bits"], "worse"),
        ([1, 2], [3, 9], "same", ["expected"], "no-worse"),
    ],
)
def test_kept_tensors_decide_what_the_places_do_not_show(
    tmp_path: Path, got: list[int], want: list[int], bits: str, parts: list[str], verdict: str
) -> None:
    """They hold what lies behind the first places, which are the same here."""
    for name, outputs in (("old", ([1, 2], [3, 4])), ("new", (got, want))):
        (tmp_path / name / "r.tensors").mkdir(parents=True)
        arrays = {
            key: np.array(values, np.float32) for key, values in zip(("got.first", "want.torch"), outputs, strict=True)
        }
        save(tmp_path / name / "r.tensors" / "a.safetensors", arrays, {})
    name = "r.tensors/a.safetensors"
    before, after = (keeping(tmp_path / folder, name) for folder in ("old", "new"))
    found = compared(report(before), report(after), tmp_path)
    assert (found.verdict, found.same_bits) == (verdict, 0 if parts else 1)
    assert [(change.bits, change.parts) for change in found.changes] == ([(bits, parts)] if parts else [])


def test_tensors_of_some_rows_prove_no_more_than_these(tmp_path: Path) -> None:
    for name, rows in (("old", [1]), ("new", [1]), ("other", [2])):
        (tmp_path / name).mkdir()
        save(tmp_path / name / "a", {"rows": np.array(rows), "got.first": np.ones(1, np.float32)}, {})
    old, new = tmp_path / "old", tmp_path / "new"
    each, again = keeping(old, "a"), keeping(new, "a")
    assert told_of(each, again, old, new) == ("alike", "unknown", "")
    assert told_of(each, keeping(new, "a", count=2), old, new) == ("other", "unknown", "")
    other = keeping(tmp_path / "other", "a", count=2)
    assert told_of(each, other, old, tmp_path / "other") == ("other", "alike", "")


def test_tensors_of_a_later_run_stand_for_no_earlier_one(tmp_path: Path) -> None:
    """Both reports name one file, which the second run replaced."""
    save(tmp_path / "a", {"got.first": np.array([1], np.float32)}, {})
    old = keeping(tmp_path, "a")
    save(tmp_path / "a", {"got.first": np.array([2], np.float32)}, {})
    for new, bits in ((keeping(tmp_path, "a"), "alike"), (keeping(tmp_path, "a", got="0x0009"), "other")):
        found = told_of(old, new, tmp_path, tmp_path)
        assert found.got == bits
        assert "did a later run replace them?" in found.note
        undigested = msgspec.structs.replace(new, tensors_sha256="")
        assert told_of(undigested, undigested, tmp_path, tmp_path).note


@pytest.mark.parametrize("change", [{"got": "0x0009"}, {"count": 2}])
def test_what_records_show_outweighs_tensors(tmp_path: Path, change: dict[str, Any]) -> None:
    save(tmp_path / "a", {"got.first": np.ones(2, np.float32), "want.torch": np.zeros(2, np.float32)}, {})
    assert told_of(keeping(tmp_path, "a"), keeping(tmp_path, "a"), tmp_path, tmp_path).got == "same"
    assert told_of(keeping(tmp_path, "a"), keeping(tmp_path, "a", **change), tmp_path, tmp_path).got == "other"


def test_a_case_that_conforms_by_a_verdict_that_is_no_agreement(tmp_path: Path) -> None:
    bad = report(record(1, Verdict.DIFFERS, conforms=True))
    assert told(tmp_path, report(FINE), bad) == EXIT_INCOMPLETE
    assert told(tmp_path, bad, report(FINE)) == EXIT_INCOMPLETE


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("../secret", "lies elsewhere"),
        ("/etc/hostname", "lies elsewhere"),
        ("none", "is none"),
        ("loop", "is none"),
        ("a\0b", "is none"),
        ("link", "lies elsewhere"),
    ],
)
def test_tensors_lie_beside_the_report_or_are_not_read(tmp_path: Path, name: str, note: str) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "link").symlink_to("/etc/hostname")
        (tmp_path / folder / "loop").symlink_to("loop")
    each = msgspec.structs.replace(differing(), tensors=name)
    other = msgspec.structs.replace(differing(got="0x0009"), tensors=name)
    found = compared(report(each), report(other), tmp_path)
    assert note in found.notes[0]
    assert (found.changes[0].bits, found.verdict) == ("other", "worse")


def test_other_settings_are_named_field_by_field() -> None:
    old, new = report(FINE), report(FINE, implementation="mine", tier="full", leg="m5", without=("torch-reference",))
    found = {each.field: (each.old, each.new) for each in compared(old, new).settings}
    assert found == {
        "leg": ("", "m5"),
        "implementation.name": ("mlx_assay.impl", "mine"),
        "selection.tier": ("quick", "full"),
        "selection.without": ("", "torch-reference"),
    }
    other = msgspec.structs.replace(
        old, environment=msgspec.structs.replace(old.environment, packages={"mlx": "0.32.3"}), suite=None
    )
    found = {each.field: (each.old, each.new) for each in compared(other, old).settings}
    assert found["environment.packages.mlx"] == ("0.32.3", old.environment.packages["mlx"])
    assert found["suite.fixtures"][0] is None


def test_exit_codes_and_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(tmp_path, report(FINE), report(FINE)) == EXIT_CONFORMS
    assert capsys.readouterr().out.splitlines()[-1] == "no-worse: 1 conform as before, 0 fail as before"
    assert told(tmp_path, report(FINE), report(differing())) == EXIT_DIFFERS
    shown = capsys.readouterr().out
    assert f"newly failing: 1\n  {FINE.id}: same-bits -> differs\n    got 0x0001 want 0x0002\n" in shown
    assert f"mlx-assay replay '{FINE.id}'" in shown
    assert told(tmp_path, report(FINE, record(2)), report(differing())) == EXIT_INCOMPLETE
    assert "incomplete (1 case is gone): 1 newly failing, 1 gone" in capsys.readouterr().out


def test_the_document_keeps_to_its_published_schema(tmp_path: Path) -> None:
    assert json.loads(PUBLISHED.read_text()) == schema()
    code = told(tmp_path, report(FINE, record(3)), report(differing(), record(2)), "--json", str(tmp_path / "d.json"))
    made = json.loads((tmp_path / "d.json").read_bytes())
    jsonschema.validate(made, schema())
    assert (code, made["verdict"]) == (EXIT_INCOMPLETE, "incomplete")
    assert [(change["kind"], change["id"]) for change in made["changes"]] == [
        ("newly-failing", FINE.id),
        ("gone", record(3).id),
        ("new", record(2).id),
    ]


HOSTILE = "\x1b[2J<script>|`@all\u202e[x](http://y)\n# head"


def test_what_a_report_says_steers_neither_a_terminal_nor_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = record(1, Verdict.ERROR, message=HOSTILE, id=f"a/b/{HOSTILE}", replay=HOSTILE)
    old = msgspec.structs.replace(report(FINE, implementation=HOSTILE), run=HOSTILE)
    told(tmp_path, old, report(bad, leg="x"), "--markdown", str(tmp_path / "d.md"))
    page, shown = (tmp_path / "d.md").read_text(), capsys.readouterr().out
    for text in (page, shown):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert not [line for line in text.splitlines() if line.startswith("# head")]
    assert "<script>" not in page.replace("\\<", "")
    assert "@all" not in page
    assert page.count("\n| ") == markdown(compared(old, report(bad, leg="x"))).count("\n| ")


def test_long_lists_are_cut_with_a_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count = 1000
    told(
        tmp_path,
        report(*(record(each) for each in range(count))),
        report(*(differing(each) for each in range(count))),
        "--markdown",
        str(tmp_path / "d.md"),
    )
    assert "and 975 more: see --json" in capsys.readouterr().out
    assert "And 800 more." in (tmp_path / "d.md").read_text()
    assert (tmp_path / "d.md").stat().st_size < 1 << 20


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, EXIT_USAGE),
        (b"", EXIT_INCOMPLETE),
        (b"{}", EXIT_INCOMPLETE),
        (b"[" * 100_000, EXIT_INCOMPLETE),
        (encode(report(FINE))[:-40], EXIT_INCOMPLETE),
        (encode(msgspec.structs.replace(report(FINE), cases=[FINE, FINE])), EXIT_INCOMPLETE),
    ],
)
def test_what_is_no_report_is_refused(
    tmp_path: Path, content: bytes | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_bytes(encode(report(FINE)))
    if content is not None:
        bad.write_bytes(content)
    for pair in ((good, bad), (bad, good)):
        assert main(["diff", *map(str, pair)]) == code
        assert "xpected" in capsys.readouterr().err


def test_a_report_is_never_overwritten(tmp_path: Path) -> None:
    assert told(tmp_path, report(FINE), report(FINE), "--json", str(tmp_path / "new.json")) == EXIT_USAGE
    same = ("--json", str(tmp_path / "d"), "--markdown", str(tmp_path / "d"))
    assert told(tmp_path, report(FINE), report(FINE), *same) == EXIT_USAGE


def test_a_step_s_summary_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary, page = tmp_path / "summary.md", tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for path in (summary, page):
        path.write_text("# before\n")
        assert told(tmp_path, report(FINE), report(FINE), "--markdown", str(path)) == EXIT_CONFORMS
    assert summary.read_text().startswith("# before\n# no-worse")
    assert page.read_text().startswith("# no-worse")


@pytest.mark.parametrize("name", ["loop", "-", "a\0b"])
def test_a_name_that_is_no_file_to_write_is_usage(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert told(tmp_path, report(FINE), report(FINE), "--json", name) == EXIT_USAGE
    assert "Expected a file but got" in capsys.readouterr().err
