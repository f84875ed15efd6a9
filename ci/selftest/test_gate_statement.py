"""The in-toto statement: what it says of a release, and that none stands where there is no verdict."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from sound import COMMIT, POLICY, Gate, ids, report
from test_gate import METAL, SMOKE, waiver
from test_gate_mutants import written

from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, Verdict

CASE = ids()[0]
GROUP = "normalized_argmax/bfloat16"
MUTANTS = "mutants.json"
FAILED = {CASE: Verdict.DIFFERS}


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


def stated(gate: Gate, *reports: Report, policy: str = POLICY, artefact: str = "", code: int = EXIT_CONFORMS) -> Any:
    """The statement over these reports; its predicate is the one that is written alone."""
    paths = {name: gate.folder / name for name in ("statement", "predicate")}
    artefact = artefact or gate.file("kernels-1.0.tgz", b"what is released")
    options = [word for name, path in paths.items() for word in (f"--{name}", str(path))]
    told = ["--artefact", artefact, "--url", "https://example.org/runs/7"]
    assert gate(*reports, policy=policy, options=[*options, *told]) == code, gate.text
    if code == EXIT_INCOMPLETE:
        assert not any(path.exists() for path in paths.values())
        return None
    made = json.loads(paths["statement"].read_bytes())
    assert made["predicate"] == json.loads(paths["predicate"].read_bytes())
    return made


def test_a_release_that_conforms_is_passed(gate: Gate) -> None:
    made = stated(gate, report())
    assert set(made) == {"_type", "subject", "predicateType", "predicate"}
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    sha256 = hashlib.sha256(b"what is released").hexdigest()
    assert made["subject"] == [{"name": "kernels-1.0.tgz", "digest": {"sha256": sha256}}]
    predicate = made["predicate"]
    assert predicate["result"] == "PASSED"
    assert predicate["url"] == "https://example.org/runs/7"
    assert [predicate[name] for name in ("passedTests", "warnedTests", "failedTests")] == [[f"host: {GROUP}"], [], []]


def test_the_configuration_is_told_by_digest(gate: Gate) -> None:
    described = {one["name"]: one for one in stated(gate, report())["predicate"]["configuration"]}
    for name in ("gate.toml", "report-0.json"):
        content = (gate.folder / name).read_bytes()
        assert described[name]["digest"] == {"sha256": hashlib.sha256(content).hexdigest()}
    assert described["report-0.json"]["annotations"]["leg"] == "host"
    assert described["commit"]["digest"] == {"gitCommit": COMMIT}
    assert sum("fixtures" in name or "judge" in name for name in described) == 2


@pytest.mark.parametrize(("given", "name"), [("", {}), ("kernels@", {"name": "kernels"})])
def test_an_artefact_is_named_by_its_digest(gate: Gate, given: str, name: dict[str, str]) -> None:
    made = stated(gate, report(), artefact=f"{given}sha256:{'a1' * 32}")
    assert made["subject"] == [{**name, "digest": {"sha256": "a1" * 32}}]


def test_a_release_that_differs_is_failed(gate: Gate) -> None:
    other = report("m4", device="g16")
    predicate = stated(gate, report(verdicts=FAILED), other, policy=POLICY + METAL, code=EXIT_DIFFERS)["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["failedTests"] == [f"host: {GROUP}"]
    assert predicate["passedTests"] == [f"m4: {GROUP}"]


def test_waivers_and_smoke_are_warnings(gate: Gate) -> None:
    predicate = stated(gate, report(verdicts=FAILED), policy=POLICY + waiver(CASE))["predicate"]
    assert (predicate["result"], predicate["warnedTests"]) == ("WARNED", [f"host: {GROUP}"])
    smoke = report("smoke", device="paravirtual", verdicts=FAILED)
    predicate = stated(gate, report(), smoke, policy=POLICY + SMOKE)["predicate"]
    assert (predicate["result"], predicate["warnedTests"]) == ("WARNED", [f"smoke: {GROUP}"])
    assert predicate["passedTests"] == [f"host: {GROUP}"]


def test_nothing_is_stated_where_there_is_no_verdict(gate: Gate) -> None:
    stated(gate, report(verdicts={CASE: Verdict.NOT_RUN}), code=EXIT_INCOMPLETE)
    assert "is not written: there is no verdict to state" in gate.text
    stated(gate, report(), policy=POLICY + METAL, code=EXIT_INCOMPLETE)


def test_a_score_of_mutants_is_a_test_of_its_own(gate: Gate) -> None:
    asked = POLICY + "[mutants]\nscore = 1.0\nleast = 5\n"
    path = gate.folder / "statement"
    options = ["--statement", str(path), "--artefact", f"sha256:{'a1' * 32}", "--mutants", str(gate.folder / MUTANTS)]
    for survivors, code, kind in ((0, EXIT_CONFORMS, "passedTests"), (1, EXIT_DIFFERS, "failedTests")):
        written(gate.folder, survivors)
        assert gate(report(), policy=asked, options=options) == code, gate.text
        predicate = json.loads(path.read_bytes())["predicate"]
        assert "mutants" in predicate[kind]
        sha256 = hashlib.sha256((gate.folder / MUTANTS).read_bytes()).hexdigest()
        assert {"sha256": sha256} in [one["digest"] for one in predicate["configuration"]]
