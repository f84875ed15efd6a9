"""Shards: each case in one, the same on every machine, about equally long, and joined to a run that the gate passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sound import COMMIT, POLICY, QUERY, Gate, document, ids, report

from mlx_assay.conformance import splitting
from mlx_assay.conformance.options import MOST_SHARDS, Options, shard
from mlx_assay.conformance.reporting.report import Shard, decode, encode
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.splitting import OTHERWISE, SHIPPED, early, expected, part, shipped, split, table, whole
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE, EXIT_USAGE
from mlx_assay.fixtures.kind import TIERS, kinds

CASES = select([]).cases
SPLIT = """
import hashlib
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.splitting import split
shares = split(select([]).cases, 8)
print(hashlib.sha256("\\n".join(case.id for share in shares for case in share).encode()).hexdigest())
"""


@settings(max_examples=30, derandomize=True, deadline=None, database=None)
@given(
    count=st.integers(1, 40),
    size=st.integers(1, 200),
    costs=st.dictionaries(st.integers(0, 199), st.integers(0, 10**9)),
)
def test_each_case_is_in_one_shard(count: int, size: int, costs: dict[int, int]) -> None:
    cases = CASES[:size]
    shares = split(cases, count, {cases[place].id: cost for place, cost in costs.items() if place < size})
    order = {case.id: place for place, case in enumerate(cases)}
    assert sorted(order[case.id] for share in shares for case in share) == list(range(size))
    assert all([order[case.id] for case in share] == sorted(order[case.id] for case in share) for share in shares)
    assert sum(not share for share in shares) == max(0, count - size)


def test_every_process_splits_alike() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", SPLIT], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1
    assert len(told.pop().strip()) == 64


@pytest.mark.parametrize("count", [2, 4, 8])
def test_shards_of_the_quick_tier_are_within_a_tenth_of_each_other(count: int) -> None:
    costs = [sum(map(expected, share)) for share in split(CASES, count)]
    assert max(costs) <= 1.1 * min(costs)


def test_recorded_durations_weigh_more_than_shipped_ones() -> None:
    slow = CASES[:3]
    shares = split(CASES[:30], 3, {case.id: 10**9 for case in slow})
    assert [sum(case in share for case in slow) for share in shares] == [1, 1, 1]


def test_shipped_durations_are_of_kinds_there_are() -> None:
    known = {f"{operation}/{name}" for operation, name in kinds()}
    assert list(shipped()) == list(TIERS)
    assert all(set(table(tier)) <= known for tier in TIERS)
    timed = sum(f"{case.operation}/{case.kind}" in table("quick") for case in CASES)
    assert timed >= 0.9 * len(CASES), "record them anew: python ci/record_durations.py REPORT"
    ordered = {tier: dict(sorted(table(tier).items())) for tier in TIERS}
    assert SHIPPED.read_text() == json.dumps(ordered, indent=2) + "\n"


def test_a_case_of_the_full_tier_alone_counts_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = CASES[:9]
    kind = f"{first.operation}/{first.kind}"
    monkeypatch.setattr(splitting, "shipped", lambda: {"quick": {kind: 7}, "full": {kind: 900}})
    assert (expected(first), expected(first, quick=False)) == (7, 900)
    monkeypatch.setattr(splitting, "shipped", lambda: {"quick": {kind: 7}, "full": {}})
    assert expected(first, quick=False) == 7
    monkeypatch.setattr(splitting, "shipped", lambda: {"quick": {}, "full": {kind: 900}})
    assert expected(first) == 900
    assert expected(replace(first, kind="none/such")) == OTHERWISE
    now = early(0)
    late = [case for case in select([first.operation], "full").cases if case not in now][:3]
    monkeypatch.setattr(splitting, "expected", lambda case, quick=True: 1 if quick else 10**6)
    shares = split([*late, *others], 3, now=now)
    assert [sum(case in late for case in share) for share in shares] == [1, 1, 1]


def test_durations_are_recorded_of_whole_runs_by_tier(tmp_path: Path) -> None:
    made, script = report(), Path(__file__).parents[1] / "record_durations.py"
    now = early(0)
    late = [case for case in select([QUERY], "full").cases if case not in now][:2]
    cases = [msgspec.structs.replace(record, seconds=0.25) for record in made.cases]
    cases += [msgspec.structs.replace(cases[0], id=case.id, seconds=2.0) for case in late]
    source, target = tmp_path / "run.json", tmp_path / "durations.json"
    source.write_bytes(encode(msgspec.structs.replace(made, cases=cases)))
    command = [sys.executable, str(script), str(source), "--out", str(target)]
    subprocess.run(command, check=True)
    written = json.loads(target.read_text())
    assert set(written["quick"].values()) == {250_000}
    assert written["full"] == {f"{late[0].operation}/{case.kind}": 2_000_000 for case in late}
    source.write_bytes(encode(msgspec.structs.replace(made, shard=Shard(index=1, count=2, whole="0" * 64))))
    refused = subprocess.run(command, capture_output=True, text=True)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "merge its shards" in refused.stderr


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "-1/8", "1/0", "a/b", "1/8/2", f"1/{MOST_SHARDS + 1}"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="Expected a shard"):
        shard(text)


def test_a_selection_knows_of_which_run_it_is_a_part() -> None:
    selection = select([QUERY])
    made = part(selection, Options(shard="2/4"))
    assert made.shard is not None
    assert (made.shard.index, made.shard.count) == (2, 4)
    assert made.shard.whole == whole(case.id for case in selection.cases)
    assert part(selection, Options()) is selection


def test_a_run_in_shards_passes_the_gate(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    gate = Gate(tmp_path, capfd.readouterr)
    query = "trellis_code_values"
    files = [str(tmp_path / f"{index}.json") for index in (1, 2)]
    for index, file in enumerate(files, 1):
        words = ["run", query, "--executor", "host", "--leg", "host", "--shard", f"{index}/2", "--report", file]
        done = subprocess.run(
            [sys.executable, "-m", "mlx_assay.conformance.cli", *words],
            cwd=tmp_path,
            env=os.environ | {"GITHUB_SHA": COMMIT},
            capture_output=True,
            text=True,
        )
        assert done.returncode == EXIT_CONFORMS, done.stdout + done.stderr
        assert f"shard: {index} of 2" in done.stdout
    policy = POLICY.replace(QUERY, query).replace("cases = 20", "cases = 6").replace('"kernels"', '"mlx_assay.impl"')
    asked = gate.file("gate.toml", policy.replace("age_hours = 24", "age_hours = 1\ncommit = false"))
    assert gate.call("gate", *files, "--policy", asked) == EXIT_CONFORMS, gate.text
    assert gate.call("gate", files[0], "--policy", asked) == EXIT_INCOMPLETE
    assert "host: missing: shard 2 of 2" in gate.text
    joined = str(tmp_path / "whole.json")
    assert gate.call("merge", *files, "--report", joined) == EXIT_CONFORMS, gate.text
    assert gate.call("gate", joined, "--policy", asked) == EXIT_CONFORMS, gate.text
    assert [record.id for record in decode(Path(joined).read_bytes()).cases] == ids([query])
    edited = document(decode(Path(joined).read_bytes()))
    edited["cases"].pop()
    assert gate.call("gate", gate.file("edited.json", edited), "--policy", asked) == EXIT_INCOMPLETE


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--shard", "99/99"], f"Expected at most {len(ids())} shards, one a case, but got 99"),
        (["--shard", "5/4"], "Expected a shard, 1/N to N/N"),
        (["--shard", "1/2", "--durations", "absent.json"], "The durations in absent.json cannot be read"),
        (["--durations", "sound.json"], "Expected a shard, as --shard 3/8, where durations are given"),
    ],
)
def test_what_cannot_be_split_is_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    gate = Gate(tmp_path, capsys.readouterr)
    gate.file("sound.json", report())
    assert gate.call("run", QUERY, "--executor", "host", *words) == EXIT_USAGE
    assert told in gate.text
