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
    assert [path.name for path in WORKFLOWS] == ["ci.yml", "gate.yml", "nightly.yml", "release.yml"]
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


APART = {"durations", "exploration", "fixtures", "judge", "mutants", "power", "soak", "sweeps", "versions"}
"""Jobs of a night that its gate does not wait for."""


def test_the_gate_waits_for_every_job() -> None:
    for name in ("ci", "nightly", "release"):
        all_jobs = read(ROOT / ".github" / "workflows" / f"{name}.yml")["jobs"]
        apart = APART if name == "nightly" else set()
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


def samples() -> list[dict[Any, Any]]:
    """The workflows that the docs show to a package that gates its release: by the workflow, and by the actions."""
    text = (ROOT / "docs" / "release-gate.md").read_text()
    return [yaml.safe_load(found) for found in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def released() -> dict[str, Any]:
    """The job there that calls the workflow."""
    job = samples()[0]["jobs"]["conformance"]
    assert isinstance(job, dict)
    return job


def test_the_docs_name_every_key_of_a_leg() -> None:
    read_there = set(re.findall(r"matrix\.leg\.([a-z-]+)", (ROOT / ".github" / "workflows" / "gate.yml").read_text()))
    assert keys("| a leg's key |") == read_there
    legs = json.loads(released()["with"]["legs"])
    assert len(legs) == 2
    assert all(set(leg) <= read_there and {"name", "runner"} <= set(leg) for leg in legs)


def test_the_docs_name_every_input_of_the_workflow() -> None:
    declared = read(ROOT / ".github" / "workflows" / "gate.yml")[True]["workflow_call"]["inputs"]
    assert keys("| input |") == set(declared)


def keys(head: str) -> set[str]:
    """What the first column of a table names."""
    table = (ROOT / "docs" / "release-gate.md").read_text().split(head)[1].split("\n\n")[0]
    return {key for line in table.splitlines()[2:] for key in re.findall(r"`([a-z-]+)`", line.split("|")[1])}


def test_the_workflow_of_the_docs_calls_ours_rightly(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "release-gate.md").read_text().split("```yaml\n")[1].split("```")[0]
    own = text.replace("OWNER/mlx-assay/", "./").replace("gate.yml@COMMIT", "gate.yml")
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    shutil.copy(ROOT / ".github" / "workflows" / "gate.yml", folder)
    for wrong in ("", "polisy"):
        (folder / "release.yml").write_text(own.replace("      policy:", f"      {wrong or 'policy'}:"))
        done = subprocess.run([str(TOOLS / "actionlint")], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) is (not wrong), done.stdout + done.stderr
    (folder / "release.yml").write_text(text.replace("OWNER", "example").replace("COMMIT", "c" * 40))
    command = [str(TOOLS / "zizmor"), "--quiet", "--offline", str(folder / "release.yml")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    called = read(folder / "gate.yml")["jobs"].values()
    needed = {f"{scope}: {access}" for part in called for scope, access in part["permissions"].items()}
    assert {f"{scope}: {access}" for scope, access in released()["permissions"].items()} == needed
    assert samples()[0]["jobs"]["publish"]["needs"] == "conformance"


def test_the_samples_of_the_docs_use_our_actions_as_they_are() -> None:
    pinned = set(PIN.findall("\n".join(path.read_text() for path in (*WORKFLOWS, *ACTIONS))))
    text = (ROOT / "docs" / "release-gate.md").read_text()
    used = [line for line in text.splitlines() if "uses: actions/" in line]
    assert len(used) > 5
    assert {found for line in used for found in PIN.findall(line)} <= pinned
    assert all(PIN.search(line) for line in used)
    own = [step for job in samples()[1]["jobs"].values() for step in job["steps"] if step["uses"].startswith("OWNER")]
    assert len(own) == 2
    for step in own:
        folder = step["uses"].removeprefix("OWNER/mlx-assay/").removesuffix("@COMMIT")
        inputs = read(ROOT / folder / "action.yml")["inputs"]
        assert set(step["with"]) <= set(inputs)
        assert {name for name, told in inputs.items() if told.get("required")} <= set(step["with"])


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
