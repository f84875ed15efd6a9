"""The quick tier: what its file leaves to the full one is known, and every purpose is served without it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from mlx_assay.conformance.mutation import tier
from mlx_assay.conformance.mutation.report import Campaign, Row, encode, totals
from mlx_assay.fixtures import kind as kind_module
from mlx_assay.fixtures.kind import LATER, all_cases, kinds, later

FOLD = "trellis_fold"
SCRIPT = Path(__file__).parents[1] / "quick_tier.py"


def campaign(*killers: Sequence[str]) -> Campaign:
    rows = [
        Row(f"m{n}", FOLD, "shift", "fold.metal:1:1", "killed", ids[0], tuple(ids[1:])) for n, ids in enumerate(killers)
    ]
    return Campaign(
        mutants=rows,
        selected=len(rows),
        complete=True,
        score=1.0,
        totals=totals(rows),
        seconds=1.0,
        workers=1,
        sources={},
    )


def test_the_file_names_nothing_that_no_kind_lists() -> None:
    assert tier.stale(later()) == []
    assert tier.stale({**later(), "trellis_fold/float32/sum/none": ["cols=256"]}) == [
        "trellis_fold/float32/sum/none?cols=256"
    ]
    assert tier.stale({"trellis_fold/float32/sum/magnitudes": ["cols=257", "cols=256"]}) == [
        "trellis_fold/float32/sum/magnitudes?cols=257"
    ]


def test_every_purpose_is_served() -> None:
    assert tier.unserved(all_cases("quick"), tier.listed().values()) == []
    without = [case for case in all_cases("quick") if case.path != "argmax_given/float32/nan/all"]
    assert ("kind", "argmax_given/float32/nan/all") in tier.unserved(without, tier.listed().values())


def test_the_tiers_hold_each_other() -> None:
    quick, listed, full = list(all_cases("quick")), tier.listed(), {case.id for case in all_cases("full")}
    assert {case.id for case in quick} <= set(listed) <= full
    moved = sum(len(sets) for sets in later().values())
    assert len(quick) + moved == len(listed)
    assert len(list(all_cases("quick", 7))) == len(quick)


def test_cases_that_kill_stay_and_the_cheaper_of_two_does() -> None:
    cases = {case.id: case for case in kinds()[FOLD, "value/special"].listed()}
    ids = list(cases)
    wanted: dict[str, set[tier.Purpose]] = {name: set() for name in ids[:4]}
    for name in ids[:2]:
        wanted[name].add(("kill", "m0"))
    wanted[ids[2]] = {("kill", "m1"), ("kill", "m0")}
    wanted[ids[3]] = {("kill", "m2")}
    assert tier.smallest(wanted, lambda name: 1) == [ids[2], ids[3]]
    wanted[ids[2]] = {("kill", "m1")}
    assert tier.smallest(wanted, lambda name: 9 if name == ids[0] else 1) == ids[1:4]


def test_who_kills_is_gathered_over_reports() -> None:
    first, second = [case.id for case in kinds()[FOLD, "sum/magnitudes"].listed()][:2]
    reports = [campaign([first], ["checker: [race] x"]), campaign([second, first])]
    assert tier.kills(reports) == {"m0": {first, second}}
    wanted = tier.asked(tier.kills(reports), tier.listed())
    assert ("kill", "m0") in wanted[first]
    assert ("kill", "m0") in wanted[second]
    with pytest.raises(tier.StaleError, match="m0 was killed by trellis_fold/float32/gone alone"):
        tier.asked({"m0": ["trellis_fold/float32/gone"]}, tier.listed())


def test_what_is_chosen_moves_nothing_that_is_asked_for(tmp_path: Path) -> None:
    cases = tier.listed(FOLD)
    kept = list(cases)[::2]
    moved = tier.later(kept, cases)
    assert sum(map(len, moved.values())) == len(cases) - len(kept)
    assert tier.stale(moved) == []


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}'])
def test_a_damaged_file_is_named(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "later.json"
    damaged.write_text(text)
    monkeypatch.setattr(kind_module, "LATER", damaged)
    later.cache_clear()
    try:
        with pytest.raises(ValueError, match=r"later\.json of the fixtures cannot be read"):
            list(all_cases("quick"))
    finally:
        later.cache_clear()


def test_the_tool_tells_and_writes(tmp_path: Path) -> None:
    before = LATER.read_bytes()
    file = tmp_path / "mutants.json"
    file.write_bytes(encode(campaign([case.id for case in kinds()[FOLD, "sum/pairs"].listed()])))
    command = [sys.executable, str(SCRIPT), str(file), "--dry"]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Expected reports on every mutant but" in refused.stderr
    done = subprocess.run([*command, "--partial"], capture_output=True, text=True, check=True)
    assert f"of {len(tier.listed())} cases" in done.stdout
    assert "1 times a mutant that no other case" in done.stdout
    assert LATER.read_bytes() == before
    assert json.loads(before).keys() == later().keys()
