"""The composite actions as a runner would run them: their own steps, inputs and outputs, on the host executor."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from runner import ROOT, Runner
from standin import Stage

from mlx_assay.impl.executors.cache import cache_directory

QUERY = "argmax_given/bfloat16/ties/tile"
POLICY = f"""
schema = "urn:mlx-assay:policy:1"
age_hours = 1
[legs.host]
implementation = "IMPLEMENTATION"
device_class = ["host-*"]
executor = "host"
queries = ["{QUERY}"]
without = ["stock-metal", "torch-reference"]
cases = 2
"""
SUBJECT = "import mlx.core as mx\n\n\ndef argmax_given(x, *_):\n    return mx.argmin(x, axis=-1)\n"


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("implementation", ["mlx_assay.impl", "subject"])
def test_a_leg_and_its_gate(implementation: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"MLX_ASSAY_CACHE": str(cache_directory())})
    work = stage.folder / "work"
    (work / "gate.toml").write_text(POLICY.replace("IMPLEMENTATION", implementation))
    (work / "subject.py").write_text(SUBJECT)
    (work / ".gitignore").write_text("__pycache__\n")
    git(work, "init", "--quiet")
    git(work, "add", ".")
    git(work, "commit", "--quiet", "--message", "x")
    commit = git(work, "rev-parse", "HEAD")
    artefact = stage.folder / "released.whl"
    artefact.write_bytes(b"released")
    sound = implementation == "mlx_assay.impl"
    runner = Runner(stage)

    asked = {"leg": "host", "executor": "host", "device-class": "host-*", "queries": QUERY, "workers": "0"}
    asked["without"] = "stock-metal torch-reference"
    if not sound:
        asked["implementation"] = implementation
    passed, told = runner.run(ROOT / "ci" / "action", **asked)
    assert (passed, told["verdict"]) == ((True, "conforms") if sound else (False, "differs"))
    setup, upload = runner.kept
    assert "actions/setup-python" in setup["uses"]
    assert upload["name"] == "report-host"
    reports = Path(upload["path"])
    assert {"host.json", "host.html", "host.xml", "machine.txt"} <= {path.name for path in reports.iterdir()}
    assert (list((reports / "bundles").iterdir()) == []) is sound
    assert json.loads(Path(told["report"]).read_text())["source"] == {"commit": commit, "dirty": False}
    assert (stage.folder / "summary").read_text().splitlines()[0].endswith("conforms" if sound else "differs")

    gate = ROOT / "ci" / "action" / "gate"
    passed, told = runner.run(gate, policy="gate.toml", commit=commit, artefact=str(artefact))
    digest = "sha256:" + hashlib.sha256(b"released").hexdigest()
    assert passed is sound
    assert told == {
        "verdict": "conforms" if sound else "differs",
        "name": "released.whl" if sound else "",
        "digest": digest if sound else "",
    }
    predicate = json.loads((Path(runner.kept[-1]["path"]) / "predicate.json").read_text())
    assert predicate["result"] == ("PASSED" if sound else "FAILED")


def test_a_leg_on_another_device_is_incomplete(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"MLX_ASSAY_CACHE": str(cache_directory())})
    runner = Runner(stage)
    passed, told = runner.run(ROOT / "ci" / "action", leg="m4", executor="host", **{"device-class": "g16"})
    assert (passed, told) == (False, {"verdict": "incomplete", "report": ""})
    assert [kept["uses"].split("@")[0] for kept in runner.kept] == ["actions/setup-python"]
