"""Legs of a gate that have reports, and none that can be taken for the leg's."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
from sound import COMMIT, NOW, POLICY, ids, report

from mlx_assay.conformance.gating.decision import Decision, LegRow, decide
from mlx_assay.conformance.gating.reading import load
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.reporting.report import Report, Shard
from mlx_assay.conformance.reporting.report import Suite as Judging
from mlx_assay.conformance.splitting import whole


def decided(folder: Path, *reports: Report, **more: Any) -> Decision:
    """A decision on reports of the leg host."""
    files = []
    for number, one in enumerate(reports):
        files.append(str(folder / f"{number}.json"))
        Path(files[-1]).write_bytes(msgspec.json.encode(one))
    (folder / "policy.toml").write_text(POLICY)
    return decide(load(str(folder / "policy.toml")), files, datetime.fromisoformat(NOW), COMMIT, **more)


def test_two_whole_reports_of_a_leg_are_none(tmp_path: Path) -> None:
    found = decided(tmp_path, report(run="one"), report(run="two", minutes=61))
    assert found.verdict == "incomplete"
    assert {one.where for one in found.reasons} == {"host"}
    assert found.legs == [LegRow(leg="host", verdict="incomplete", bits=True)]
    assert found.operations == []
    assert len(found.reports) == 2


class Other(Suite):
    """A suite with other fixtures than those installed."""

    installed = Judging(version="9.9", fixtures="f" * 64, judge="e" * 64)  # type: ignore[assignment]


def test_the_suite_that_is_given_is_asked(tmp_path: Path) -> None:
    found = decided(tmp_path, report(), suite=Other())
    assert found.suite == Other.installed
    assert [one.text.partition(" but ")[0] for one in found.reasons] == [
        "expected version ==9.9 of the suite",
        f"expected digest {'f' * 64} of the fixtures",
        f"expected digest {'e' * 64} of the judge",
    ]


def test_a_shard_that_cannot_be_relied_on_makes_its_leg_incomplete(tmp_path: Path) -> None:
    names = ids()
    shards = [Shard(index=index + 1, count=2, whole=whole(names)) for index in range(2)]
    sound = [report(ids=names[index::2], shard=shard, minutes=60 + index) for index, shard in enumerate(shards)]
    (row,) = decided(tmp_path, *sound).legs
    assert (row.verdict, row.cases) == ("conforms", len(names))
    old = report(ids=names[1::2], shard=shards[1], minutes=60 * 30)
    found = decided(tmp_path, sound[0], old)
    assert [one.where for one in found.reasons] == [f"host, {tmp_path / '1.json'}"]
    assert found.legs == [LegRow(leg="host", verdict="incomplete", bits=True)]


def test_a_file_that_is_no_report_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "0.json").write_bytes(msgspec.json.encode(report()))
    files = [str(tmp_path / name) for name in ("0.json", "other.json")]
    found = decide(load(str(tmp_path / "policy.toml")), files, datetime.fromisoformat(NOW), COMMIT)
    assert found.verdict == "incomplete"
    assert [(one.where, one.mend) for one in found.reasons] == [
        (files[1], "take the file as the run wrote it, or run again")
    ]
    assert [one.verdict for one in found.legs] == ["conforms"]
