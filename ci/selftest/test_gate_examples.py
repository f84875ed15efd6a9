"""The policy that this repository shows to others."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from sound import Gate, report

from mlx_assay.conformance.reporting.report import Implementation
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE, Verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


def test_the_example_of_a_downstream_holds(gate: Gate) -> None:
    """Every leg that it needs, the one waiver among them, and nothing of what it does not."""
    asked = (ROOT / "ci/examples/gate.toml").read_text()
    known = tomllib.loads(asked)
    (waived,) = known["waivers"]
    queries = known["legs"]["m1"]["queries"]
    implementation = Implementation(
        name="sampling_kernels:metal", operations=["normalized_argmax", "apply_token_bitmask"]
    )
    devices = {"m1": "g13", "m4": "g16", "linux": "host-x86_64", "hosted": "paravirtual"}
    reports = {
        leg: report(
            leg,
            queries,
            {waived["query"]: Verdict(waived["expect"])} if leg == waived["leg"] else None,
            device,
            implementation=implementation,
        )
        for leg, device in devices.items()
    }
    assert gate(*reports.values(), policy=asked) == EXIT_CONFORMS, gate.text
    assert "waiver holds" in gate.text
    assert re.search(r"nightly +bits .* absent", gate.text)
    for leg in devices:
        assert gate(*(one for name, one in reports.items() if name != leg), policy=asked) == EXIT_INCOMPLETE
        assert f"{leg}: it has no report" in gate.text
    healed = report("m1", queries, None, "g13", implementation=implementation)
    assert gate(*(reports | {"m1": healed}).values(), policy=asked) == EXIT_INCOMPLETE
    assert "now conforming: 1 case" in gate.text
