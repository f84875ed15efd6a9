"""A report of mutants before the gate: complete, of these kernels, of enough mutants, and with the score asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from mlx_assay.conformance.gating.mutants import noticed
from mlx_assay.conformance.gating.policy import Mutants
from mlx_assay.conformance.mutation import report
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.ruling import Ruling

MUTANTS = [mutant for mutant in all_mutants().values() if mutant.source.name == "softcap.py"]
ASKED = Mutants(score=1.0, least=5, operations=["logit_softcap", "compiled_logit_softcap"])


def written(folder: Path, survivors: int = 0, count: int | None = None) -> report.Campaign:
    rulings = [
        Ruling(mutant.id, "survived" if place < survivors else "killed", "" if place < survivors else "a/b/c")
        for place, mutant in enumerate(MUTANTS)
    ]
    complete = count is None
    found = report.campaign(MUTANTS, rulings[:count], complete=complete, seconds=1.0, workers=2)
    report.write(found, folder / "mutants.json")
    return found


def reasons(folder: Path, asked: Mutants | None = ASKED) -> list[tuple[str, str]]:
    return [(one.outcome, one.text) for one in noticed(str(folder / "mutants.json"), asked)]


def test_a_sound_report_opens(tmp_path: Path) -> None:
    written(tmp_path)
    assert reasons(tmp_path) == []


def test_a_survivor_closes(tmp_path: Path) -> None:
    written(tmp_path, survivors=1)
    ((outcome, text),) = reasons(tmp_path)
    assert outcome == "differs"
    assert MUTANTS[0].id in text
    assert reasons(tmp_path, msgspec.structs.replace(ASKED, score=0.9)) == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (msgspec.structs.replace(ASKED, least=400), "and 400 are needed"),
        (msgspec.structs.replace(ASKED, operations=["trellis_fold"]), "no mutants of trellis_fold"),
        (None, "no table"),
    ],
)
def test_another_report_than_asked_for(tmp_path: Path, asked: Mutants | None, words: str) -> None:
    written(tmp_path)
    ((outcome, text),) = reasons(tmp_path, asked)
    assert outcome == "incomplete"
    assert words in text


def test_a_campaign_of_some_mutants_is_not_one_of_all(tmp_path: Path) -> None:
    found = written(tmp_path)
    rows = found.mutants[1:]
    part = msgspec.structs.replace(found, mutants=rows, selected=len(rows), totals=report.totals(rows))
    report.write(part, tmp_path / "mutants.json")
    ((outcome, text),) = reasons(tmp_path)
    assert outcome == "incomplete"
    assert f"1 mutant of the same kernels is not in it: {MUTANTS[0].id}" in text
    ((outcome, text),) = reasons(tmp_path, msgspec.structs.replace(ASKED, operations=[]))
    assert outcome == "incomplete"
    assert MUTANTS[0].id in text


def test_a_text_that_serves_an_operation_is_not_left_out(tmp_path: Path) -> None:
    mutants = [mutant for mutant in all_mutants().values() if mutant.source.name == "trellis/fold.metal"]
    rulings = [Ruling(mutant.id, "killed", "a/b/c") for mutant in mutants]
    report.write(report.campaign(mutants, rulings, complete=True, seconds=1.0, workers=2), tmp_path / "mutants.json")
    ((outcome, text),) = reasons(tmp_path, msgspec.structs.replace(ASKED, operations=["trellis_fold"]))
    assert outcome == "incomplete"
    assert "mutants of the same kernels are not in it: trellis_decode/" in text


def test_a_campaign_that_was_stopped(tmp_path: Path) -> None:
    written(tmp_path, count=6)
    ((outcome, text),) = reasons(tmp_path)
    assert outcome == "incomplete"
    assert "not run to its end" in text


def test_a_report_of_other_kernels(tmp_path: Path) -> None:
    found = written(tmp_path)
    report.write(msgspec.structs.replace(found, sources={"softcap.py": "0" * 64}), tmp_path / "mutants.json")
    ((outcome, text),) = reasons(tmp_path)
    assert outcome == "incomplete"
    assert "other kernels" in text


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00" * 100, b'{"schema": "mlx-assay-mutants/1", "mutants": []}'])
def test_a_damaged_report(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mutants.json").write_bytes(content)
    ((outcome, text),) = reasons(tmp_path)
    assert outcome == "incomplete"
    assert "cannot be read" in text


def test_a_report_that_is_asked_for_and_not_given(tmp_path: Path) -> None:
    assert [one.outcome for one in noticed(None, ASKED)] == ["incomplete"]
    assert [one.outcome for one in noticed(str(tmp_path / "nowhere.json"), ASKED)] == ["incomplete"]
    assert noticed(None, None) == []


def test_the_gate_imports_no_kernels_for_it() -> None:
    check = "import sys, mlx_assay.conformance.gating.mutants; print('mlx.core' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "False"
