"""The composite actions as a runner would run them: their own steps, inputs and outputs, on the host executor."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from standin import Stage

from mlx_assay.impl.executors.cache import cache_directory

ROOT = Path(__file__).parents[2]
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
cases = 4
"""
SUBJECT = "import mlx.core as mx\n\n\ndef argmax_given(x, *_):\n    return mx.argmin(x, axis=-1)\n"
PYTHON = f'case "$*" in "-m pip "*) exit 0 ;; *) exec "{sys.executable}" "$@" ;; esac'
ASSAY = f'exec "{sys.executable}" -m mlx_assay.conformance.cli "$@"'


Given = dict[str, str]
Known = dict[str, dict[str, str]]
"""What an action was given by input, and what its steps told by id and output."""


class Runner:
    """Runs an action's steps one by one, keeps what they tell each other, and counts what they would upload."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.kept: list[dict[str, str]] = []
        inner = stage.folder / "inner"
        stage.put("python", PYTHON, at=inner)
        stage.put("mlx-assay", ASSAY, at=inner)
        stage.put("python3", f'for last; do :; done; mkdir -p "$last/bin"; cp "{inner}"/* "$last/bin"')

    def run(self, action: Path, **inputs: str) -> tuple[bool, dict[str, str]]:
        """Whether every step passed, and the action's outputs."""
        loaded = yaml.safe_load((action / "action.yml").read_text())
        given = {name: told.get("default", "") for name, told in loaded["inputs"].items()} | inputs
        assert set(given) == set(loaded["inputs"])
        known: Known = {}
        passed = True
        for step in loaded["runs"]["steps"]:
            condition = step.get("if")
            if not (passed if condition is None else evaluated(condition, given, known, self.stage)):
                continue
            if "uses" in step:
                self.kept.append({**filled(step.get("with", {}), given, known, self.stage), "uses": step["uses"]})
                continue
            passed &= self._body(action, step, given, known)
        outputs = {name: told["value"] for name, told in loaded["outputs"].items()}
        return passed, filled(outputs, given, known, self.stage)

    def _body(
        self, action: Path, step: dict[str, Any], given: dict[str, str], known: dict[str, dict[str, str]]
    ) -> bool:
        (self.stage.folder / "output").write_text("")
        body = self.stage.folder / "body"
        paths = (self.stage.folder / "path").read_text().split()
        body.write_text("#!/bin/bash\nset -eo pipefail\n" + "".join(f'PATH="{p}:$PATH"\n' for p in paths) + step["run"])
        body.chmod(0o755)
        done = self.stage.run(
            body, GITHUB_ACTION_PATH=str(action), **filled(step.get("env", {}), given, known, self.stage)
        )
        print(step["name"], done.stdout[-2000:], done.stderr[-2000:])
        known[step.get("id", "")] = self.stage.outputs
        return done.returncode == 0


def evaluated(text: str, given: Given, known: Known, stage: Stage) -> Any:
    """One of GitHub's expressions, of the few kinds that the actions have."""
    inside = text.removeprefix("${{").removesuffix("}}").strip()
    inside = re.sub(r"\bsteps\.(\w+)\.outputs\.(\w+)", r"known.get('\1', {}).get('\2', '')", inside)
    inside = re.sub(r"\binputs\.([a-z-]+)", r"given['\1']", inside)
    inside = (
        inside.replace("runner.temp", "temp").replace("!cancelled()", "True").replace("&&", "and").replace("||", "or")
    )
    return eval(inside, {"__builtins__": {}}, {"known": known, "given": given, "temp": str(stage.temp)})


def filled(values: dict[str, Any], given: Given, known: Known, stage: Stage) -> dict[str, str]:
    """Values with their expressions filled in."""
    return {
        name: re.sub(r"\$\{\{.*?\}\}", lambda found: str(evaluated(found[0], given, known, stage)), str(value))
        for name, value in values.items()
    }


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("implementation", ["mlx_assay.impl", "subject"])
def test_a_leg_and_its_gate(implementation: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"MLX_ASSAY_CACHE": str(cache_directory())})
    work = stage.folder / "work"
    (work / "gate.toml").write_text(POLICY.replace("IMPLEMENTATION", implementation))
    (work / "subject.py").write_text(
        "import mlx.core as mx\n\n\ndef argmax_given(x, *_):\n    return mx.argmin(x, axis=-1)\n"
    )
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
