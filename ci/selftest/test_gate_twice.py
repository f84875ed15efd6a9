"""A leg whose reports are not its own: what is wrong with each of them is not told besides."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec
from sound import COMMIT, NOW, POLICY, report

from mlx_assay.conformance.gating.decision import decide
from mlx_assay.conformance.gating.reading import load


def test_two_old_reports_of_a_leg_are_told_of_once(tmp_path: Path) -> None:
    files = []
    for number in range(2):
        files.append(str(tmp_path / f"{number}.json"))
        Path(files[-1]).write_bytes(msgspec.json.encode(report(run=str(number), minutes=60 * 48 + number)))
    (tmp_path / "policy.toml").write_text(POLICY)
    found = decide(load(str(tmp_path / "policy.toml")), files, datetime.fromisoformat(NOW), COMMIT)
    assert found.verdict == "incomplete"
    assert [one.where for one in found.reasons] == ["host"]
    assert "older" not in found.reasons[0].text
