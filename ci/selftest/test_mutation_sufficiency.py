"""Which cases are enough for a score, from a report of mutants alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.report import Campaign, Row, encode, score, totals
from mlx_assay.fixtures.kind import all_cases, kinds

FOLD = "trellis_fold"
IDS = [mutant.id for mutant in all_mutants().values() if FOLD in mutant.source.operations]


def report(killers: list[str], *, selected: int | None = None) -> Campaign:
    rows = [
        Row(name, FOLD, "shift", "fold.metal:1:1", "killed" if by else "survived", by)
        for name, by in zip(IDS, killers, strict=False)
    ]
    count = len(rows) if selected is None else selected
    return Campaign(
        mutants=rows,
        selected=count,
        complete=count == len(rows),
        score=score(rows),
        totals=totals(rows),
        seconds=1.0,
        workers=1,
        sources={},
    )


def test_who_killed_is_enough_and_kinds_without_a_kill_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [case for case in all_cases("quick") if case.operation == FOLD]
    often, once = cases[0].id, cases[-1].id
    file, target = tmp_path / "mutants.json", tmp_path / "sufficient.json"
    file.write_bytes(encode(report([once, often, often, "checker: [race] x", ""])))
    assert main(["mutate", "--needless", str(file), "--json", str(target)]) == 0
    (one,) = json.loads(target.read_text())["operations"]
    assert one["cases"] == [often, once]
    assert (one["mutants"], one["tier_cases"]) == (3, len(cases))
    assert 0 < one["seconds"] < one["tier_seconds"]
    every = {name for operation, name in kinds() if operation == FOLD}
    assert set(one["needless"]) == every - {cases[0].kind, cases[-1].kind}
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith(f"{FOLD}: 2 of {len(cases)} cases (")
    assert (one["told"], one["planted"]) == (5, len(IDS))
    assert told[1].startswith(f"  the report tells of 5 of the {len(IDS)} mutants of its kernels: ")
    assert told[2:] == [f"  no mutant needed {kind}" for kind in one["needless"]]


def test_of_all_mutants_no_number_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in all_cases("quick") if case.operation == FOLD)
    file = tmp_path / "mutants.json"
    file.write_bytes(encode(report([case.id] * len(IDS))))
    assert main(["mutate", "--needless", str(file)]) == 0
    told = capsys.readouterr().out
    assert f"kill all {len(IDS)} mutants" in told
    assert "of its kernels" not in told


def test_a_report_that_is_not_whole_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in all_cases("quick") if case.operation == FOLD)
    file = tmp_path / "mutants.json"
    file.write_bytes(encode(report([case.id], selected=2)))
    assert main(["mutate", "--needless", str(file)]) == 3
    assert "not run to its end" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{}", None])
def test_a_file_that_is_no_report_is_refused(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mutants.json"
    file.write_bytes(encode(report(["checker: [race] x"])) if text is None else text.encode())
    assert main(["mutate", "--needless", str(file)]) == 2
    assert ("hold none" if text is None else "cannot be read") in capsys.readouterr().err
