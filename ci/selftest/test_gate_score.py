"""A report of mutants at the edges of what a policy asks: as many as are needed, none to be scored, and too large."""

from __future__ import annotations

from pathlib import Path

from mlx_assay.conformance.gating.mutants import noticed
from mlx_assay.conformance.gating.policy import Mutants
from mlx_assay.conformance.mutation import report
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.ruling import EQUIVALENT, KILLED, Ruling

MUTANTS = [mutant for mutant in all_mutants().values() if mutant.source.name == "softcap.py"]


def told(path: Path, least: int) -> list[tuple[str, str]]:
    asked = Mutants(score=1.0, least=least, operations=["logit_softcap"])
    return [(one.outcome, one.text) for one in noticed(str(path), asked)]


def written(path: Path, outcome: str, by: str) -> None:
    rulings = [Ruling(mutant.id, outcome, by, reason="" if by else "It changes nothing.") for mutant in MUTANTS]
    report.write(report.campaign(MUTANTS, rulings, complete=True, seconds=1.0, workers=1), path)


def test_as_many_as_are_needed_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "mutants.json"
    written(path, KILLED, "a/b/c")
    count = len(MUTANTS)
    assert told(path, count) == []
    assert told(path, count + 1) == [("incomplete", f"it has {count} mutants, and {count + 1} are needed")]


def test_nothing_but_equivalents_has_no_score(tmp_path: Path) -> None:
    path = tmp_path / "mutants.json"
    written(path, EQUIVALENT, "")
    ((outcome, text),) = told(path, 1)
    assert (outcome, text.partition(", and")[0]) == ("differs", "the score is none")


def test_a_report_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "mutants.json"
    path.write_bytes(b"{" + b" " * (32 * 1024 * 1024))
    ((outcome, text),) = told(path, 1)
    assert outcome == "incomplete"
    assert text.endswith("Expected at most 33554432 bytes but there are more")
    path.write_bytes(b"{" + b" " * (32 * 1024 * 1024 - 1))
    ((_, other),) = told(path, 1)
    assert "bytes" not in other
