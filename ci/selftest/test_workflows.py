"""The workflows and actions: thin, pinned, of few permissions, clean to linters, and each body a script of ci/."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / "ci" / "action").rglob("action.yml"))
SCRIPTS = sorted((ROOT / "ci" / "steps").iterdir())
TOOLS = Path(sys.executable).parent
GIVEN = {"RUNNER_TEMP", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"}
"""Variables that the runner sets for every step."""

BODY = re.compile(r'(?:"\$GITHUB_ACTION_PATH/(?P<up>(?:\.\./)+)(?P<inner>steps/[a-z]+)"|(?P<own>ci/[a-z/]+))')
PIN = re.compile(r"uses: (?P<action>actions/[a-z-]+)@(?P<commit>[0-9a-f]{40}) # (?P<tag>v\d+\.\d+\.\d+)")


def read(path: Path) -> dict[Any, Any]:
    loaded = yaml.safe_load(path.read_text())
    assert isinstance(loaded, dict)
    return loaded


def jobs() -> Iterator[tuple[Path, str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read(path)["jobs"].items():
            yield path, name, job


def steps() -> Iterator[tuple[Path, dict[str, Any]]]:
    for path, _, job in jobs():
        yield from ((path, step) for step in job["steps"])
    for path in ACTIONS:
        yield from ((path, step) for step in read(path)["runs"]["steps"])


def script(path: Path, step: dict[str, Any]) -> Path:
    """The script that a step's body is."""
    found = BODY.fullmatch(step["run"])
    assert found, f"{path.name}: {step['run']!r} is not one script of ci/"
    if found["own"]:
        return ROOT / found["own"]
    return (path.parent / found["up"] / found["inner"]).resolve()


def test_there_is_something_to_look_at() -> None:
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "gate.yml", "nightly.yml"]
    assert len(ACTIONS) == 2
    assert len(list(steps())) > 40


def test_every_body_is_one_script_and_every_script_is_a_body() -> None:
    bodies = {script(path, step) for path, step in steps() if "run" in step}
    assert bodies == {*SCRIPTS, ROOT / "ci" / "check"}
    assert all(os.access(body, os.X_OK) for body in bodies)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_stops_at_its_first_failure(path: Path) -> None:
    first, *lines = path.read_text().splitlines()
    if first == "#!/usr/bin/env python3":
        return
    assert first == "#!/usr/bin/env bash"
    code = [line for line in lines if not line.startswith("#")]
    assert code[0] == "set -euo pipefail"
    beyond = re.compile(r"mapfile|readarray|declare -A|\$\{\w+(\^|,)|&>>|\|&|\$\{\w+\[@\]|timeout |readlink -f|sed -i")
    assert [line for line in code if beyond.search(line)] == [], "macOS has bash 3.2 and BSD's tools"


def test_a_step_gives_its_script_what_it_reads() -> None:
    for path, step in steps():
        if "run" not in step:
            continue
        text = script(path, step).read_text()
        environment = {**step.get("env", {})}
        for job in read(path).get("jobs", {}).values():
            if step in job["steps"]:
                environment |= job.get("env", {})
        needed = set(re.findall(r"\$\{(\w+):\?\}", text)) | set(re.findall(r'os\.environ\["(\w+)"\]', text))
        assert needed - GIVEN <= set(environment), (path.name, step["run"])
        assert [name for name in step.get("env", {}) if name not in text and step["run"] != "ci/check"] == []


def test_permissions_are_few_and_jobs_end() -> None:
    for path in WORKFLOWS:
        assert read(path)["permissions"] == {}
    for path, name, job in jobs():
        assert 0 < job["timeout-minutes"] <= 120
        writing = {scope for scope, access in job["permissions"].items() if access != "read"}
        assert writing == ({"attestations", "id-token"} if (path.name, name) == ("gate.yml", "attest") else set())
        if writing:
            assert not [step for step in job["steps"] if "run" in step or step["uses"].startswith(("$", "."))]


def test_actions_are_pinned_as_the_docs_list_them() -> None:
    listed = (ROOT / "docs" / "release-gate.md").read_text()
    used = set()
    for path in (*WORKFLOWS, *ACTIONS):
        for line in path.read_text().splitlines():
            if "uses:" in line and not line.strip().startswith("#") and "uses: $/" not in line:
                found = PIN.search(line)
                assert found, line
                used.add(found.group("action", "tag", "commit"))
    assert len({action for action, _, _ in used}) == len(used) == 6
    for action, tag, commit in used:
        assert f"| `{action}` | {tag} | `{commit}` |" in listed


def test_runners_are_named_by_version() -> None:
    for path, name, job in jobs():
        told = f"{job['runs-on']} {job.get('strategy', '')}"
        assert "latest" not in told, (path.name, name)


def test_checkouts_keep_no_credentials() -> None:
    checkouts = [step for _, step in steps() if "actions/checkout" in step.get("uses", "")]
    assert len(checkouts) > 8
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


def test_the_self_hosted_mac_never_runs_a_fork() -> None:
    hosted = [(path.name, name, job) for path, name, job in jobs() if "self-hosted" in job["runs-on"]]
    assert [(path, name) for path, name, _ in hosted] == [("ci.yml", "device")]
    condition = hosted[0][2]["if"]
    assert "github.event.pull_request.head.repo.full_name == github.repository" in condition
    assert "vars.DEVICE_CLASS != ''" in condition
    gate = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["gate"]
    assert gate["env"]["DEVICES"] == condition, "the gate must expect the device exactly where it runs"


def test_the_gate_waits_for_every_job() -> None:
    for name in ("ci", "nightly"):
        all_jobs = read(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]
        apart = {"exploration", "fixtures", "versions"} if name == "nightly" else set()
        assert set(all_jobs["gate"]["needs"]) == set(all_jobs) - {"gate"} - apart
        assert all_jobs["gate"]["if"] == "${{ always() }}"


def test_our_actions_are_given_inputs_that_they_have() -> None:
    for path, step in steps():
        if not step.get("uses", "").startswith("$/"):
            continue
        inputs = read(ROOT / step["uses"].removeprefix("$/") / "action.yml")["inputs"]
        given = set(step.get("with", {}))
        assert given <= set(inputs), path.name
        assert {name for name, told in inputs.items() if told.get("required")} <= given


@pytest.mark.parametrize(
    "path", [*ACTIONS, ROOT / ".github" / "workflows" / "gate.yml"], ids=lambda path: path.parent.name
)
def test_inputs_are_declared_and_used(path: Path) -> None:
    text, loaded = path.read_text(), read(path)
    declared = loaded["inputs"] if "inputs" in loaded else loaded[True]["workflow_call"]["inputs"]
    used = set(re.findall(r"\binputs\.([a-z-]+)", text))
    assert used == set(declared)
    assert all(told["description"].endswith(".") for told in declared.values())


def released() -> dict[str, Any]:
    """The job that the docs show to a package that gates its release."""
    text = (ROOT / "docs" / "release-gate.md").read_text()
    found = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert found
    loaded = yaml.safe_load(found[1])
    assert isinstance(loaded, dict)
    return loaded


def test_the_docs_name_every_key_of_a_leg() -> None:
    read_there = set(re.findall(r"matrix\.leg\.([a-z-]+)", (ROOT / ".github" / "workflows" / "gate.yml").read_text()))
    table = (ROOT / "docs" / "release-gate.md").read_text().split("| a leg's key |")[1].split("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert {key for row in rows for key in re.findall(r"`([a-z-]+)`", row)} == read_there
    (job,) = released().values()
    legs = json.loads(job["with"]["legs"])
    assert len(legs) == 2
    assert all(set(leg) <= read_there and {"name", "runner"} <= set(leg) for leg in legs)
    assert "matrix.leg.name" in (ROOT / ".github" / "workflows" / "gate.yml").read_text()


def test_the_job_of_the_docs_calls_the_workflow_rightly(tmp_path: Path) -> None:
    (job,) = released().values()
    assert job.pop("needs") == "build"
    job["uses"] = job["uses"].replace("OWNER/mlx-assay/", "./").removesuffix("@COMMIT")
    caller = {"name": "Release", "on": {"push": {"tags": ["v*"]}}, "permissions": {}, "jobs": {"conformance": job}}
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    shutil.copy(ROOT / ".github" / "workflows" / "gate.yml", folder)
    for wrong in ("", "polisy"):
        if wrong:
            job["with"][wrong] = job["with"].pop("policy")
        (folder / "release.yml").write_text(yaml.safe_dump(caller, sort_keys=False))
        done = subprocess.run([str(TOOLS / "actionlint")], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) is (not wrong), done.stdout + done.stderr
    needed = {
        f"{scope}: {access}"
        for part in read(folder / "gate.yml")["jobs"].values()
        for scope, access in part["permissions"].items()
    }
    assert {f"{scope}: {access}" for scope, access in job["permissions"].items()} == needed


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(TOOLS), os.environ["PATH"]))
    return subprocess.run(
        [str(folder / "ci" / "workflows")],
        env={**os.environ, "PATH": path, "ZIZMOR_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_linters_find_nothing() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


CI, GATE, NIGHTLY = (f".github/workflows/{name}.yml" for name in ("ci", "gate", "nightly"))
ACTION = "ci/action/action.yml"
FAULTS = {
    "is potentially untrusted": (CI, "run: ci/steps/tests", "run: echo ${{ github.event.pull_request.title }}"),
    "unpinned-uses": (GATE, "attest@1e69f48acb82d1966a394da916b4c1698aa569d6", "attest@v4"),
    "excessive-permissions": (NIGHTLY, "permissions: {}", "permissions: write-all"),
    "artipacked": (CI, "persist-credentials: false", "persist-credentials: true"),
    'property "imago"': (CI, "matrix.image }}", "matrix.imago }}"),
    "may expand into attacker-controllable": (
        ACTION,
        "run: '\"$GITHUB_ACTION_PATH/../steps/machine\"'",
        "run: echo ${{ inputs.leg }}",
    ),
    "SC2086": ("ci/steps/gate", 'cat "$out/gate.md"', "cat $out/gate.md"),
    "F401": ("ci/steps/needs", "import json\n", "import json\nimport re\n"),
    "": (CI, "name: CI", "name: CI"),
}
"""What a linter calls a fault, and how to make it; the last is none."""


@pytest.mark.parametrize("fault", FAULTS)
def test_the_linters_find_a_fault(fault: str, tmp_path: Path) -> None:
    name, right, wrong = FAULTS[fault]
    whole = [path for kept in (".github", "ci/action", "ci/steps") for path in (ROOT / kept).rglob("*")]
    alone = [ROOT / kept for kept in ("ci/check", "ci/workflows", "ci/validation.sh", "pyproject.toml")]
    for path in whole + alone:
        if path.is_file() and "__pycache__" not in path.parts:
            target = tmp_path / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
    (tmp_path / ".git").mkdir()
    text = (tmp_path / name).read_text()
    assert right in text
    (tmp_path / name).write_text(text.replace(right, wrong))
    done = lint(tmp_path)
    assert (done.returncode == 0) is (not fault), done.stdout + done.stderr
    assert fault in done.stdout + done.stderr
