"""What every leg of the workflows comes to: their matrices and inputs filled in, down to the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from runner import ROOT, Runner, evaluated, filled
from standin import Stage, parsed

from mlx_assay.conformance.gating.policy import Policy
from mlx_assay.conformance.gating.reading import load
from mlx_assay.conformance.selection import select

ACTION = ROOT / "ci" / "action"
ASSAY = """case "$1" in
run) while [ "$1" != --report ]; do shift; done; echo '{}' >"$2" ;;
esac"""
PUSH = {"event_name": "push", "repository": "o/r", "sha": "c" * 40}
VARIABLES = {"DEVICE_CLASS": "g16", "TORCH_INDEX": ""}


def workflow(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded["jobs"]


def combinations(matrix: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "include" in matrix:
        yield from matrix["include"]
        return
    for chosen in product(*matrix.values()):
        yield dict(zip(matrix, chosen, strict=True))


def legs(name: str, inputs: dict[str, Any]) -> Iterator[dict[str, str]]:
    """What the action is given for each leg of a workflow."""
    for job in workflow(name).values():
        matrix = job.get("strategy", {}).get("matrix", {})
        if name == "gate" and matrix:
            matrix = {"leg": json.loads(inputs["legs"])}
        for chosen in combinations(matrix):
            contexts = {
                "matrix": chosen,
                "inputs": inputs,
                "vars": VARIABLES,
                "github": PUSH,
                "needs": {"seed": {"outputs": {"seed": "20261130"}}},
            }
            yield from (filled(step["with"], contexts) for step in job["steps"] if step.get("uses") == "$/ci/action")


def asked(given: dict[str, str], folder: Path) -> dict[str, Any]:
    """The command line that a leg comes to."""
    stage = Stage(folder)
    passed, told = Runner(stage, ASSAY, "exit 0").run(ACTION, **given)
    assert passed
    assert told["verdict"] == "conforms"
    (run,) = [call for call in stage.of("mlx-assay") if call[0] == "run"]
    (canary,) = [call for call in stage.of("python") if "--device-class" in call]
    return {**parsed(run), "canary": canary[-1], "planted": any("--planted" in call for call in stage.of("python"))}


def test_the_legs_of_a_change_are_those_of_its_policy(tmp_path: Path) -> None:
    policy = msgspec.toml.decode((ROOT / "ci" / "gates" / "device.toml").read_bytes(), type=Policy)
    found = {}
    for number, given in enumerate(legs("ci", {})):
        (tmp_path / str(number)).mkdir()
        leg = asked(given, tmp_path / str(number))
        found[leg["leg"]] = leg
    assert list(found) == list(policy.legs)
    for name, leg in policy.legs.items():
        assert (found[name]["executor"], found[name]["tier"]) == (leg.executor, leg.tier)
        assert found[name]["n"] == (2 if name == "host" else 1)
        assert found[name]["planted"] is (name == "metal-validation")
    assert [found[name]["canary"] for name in ("host", "smoke-macos-14", "metal")] == ["host-*", "paravirtual", "g16"]


def test_a_night_runs_every_shard_of_one_seed() -> None:
    given = list(legs("nightly", {}))
    assert {(one["leg"], one["tier"], one["seed"], one["executor"]) for one in given} == {
        ("host", "full", "20261130", "host")
    }
    assert [one["shard"] for one in given] == [f"{index}/8" for index in range(1, 9)]


def test_a_release_runs_the_legs_of_the_policy_beside_it(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "release-gate.md").read_text()
    workflow_text, policy_text = (text.split(f"```{language}\n")[1].split("```")[0] for language in ("yaml", "toml"))
    (tmp_path / "gate.toml").write_text(policy_text)
    policy = load(str(tmp_path / "gate.toml")).policy
    given = yaml.safe_load(workflow_text)["jobs"]["conformance"]["with"]
    declared = yaml.safe_load((ROOT / ".github" / "workflows" / "gate.yml").read_text())[True]["workflow_call"][
        "inputs"
    ]
    inputs = {name: told.get("default", "") for name, told in declared.items()} | given
    assert [leg["name"] for leg in json.loads(inputs["legs"])] == list(policy.legs)
    for (name, held), chosen in zip(policy.legs.items(), legs("gate", inputs), strict=True):
        (tmp_path / name).mkdir()
        leg = asked(chosen, tmp_path / name)
        assert (leg["leg"], leg["tier"], leg["n"], leg["seed"]) == (name, held.tier, 1, held.seed)
        assert (leg["executor"], leg["queries"]) == (held.executor, held.queries)
        assert [leg["canary"]] == held.device_class
        assert leg["implementation"] == held.implementation == "my_package.kernels"
        assert not leg["checked"]
        assert held.cases <= len(select(held.queries).cases)


@pytest.mark.parametrize(
    ("device", "event", "head", "runs"),
    [
        ("g16", "push", "", True),
        ("", "push", "", False),
        ("g16", "pull_request", "o/r", True),
        ("g16", "pull_request", "fork/r", False),
        ("g16", "workflow_dispatch", "", True),
    ],
)
def test_where_the_real_device_takes_part(device: str, event: str, head: str, runs: bool) -> None:
    jobs = workflow("ci")
    github = {**PUSH, "event_name": event, "event": {"pull_request": {"head": {"repo": {"full_name": head}}}}}
    contexts: dict[str, Any] = {"vars": {"DEVICE_CLASS": device}, "github": github}
    assert bool(evaluated(jobs["device"]["if"], contexts)) is runs
    contexts["env"] = filled(jobs["gate"]["env"], contexts)
    given = filled(jobs["gate"]["steps"][-1]["with"], contexts)
    assert given == {"policy": f"ci/gates/{'device' if runs else 'hosted'}.toml", "commit": "c" * 40}


@pytest.mark.parametrize(
    ("artefact", "file", "path"), [("", "", ""), ("wheel", "", "/t/artefact/"), ("w", "x", "/t/artefact/x")]
)
def test_the_file_that_is_released(artefact: str, file: str, path: str) -> None:
    gate = workflow("gate")["gate"]["steps"][-1]
    contexts = {"inputs": {"artefact": artefact, "file": file, "policy": "p"}, "runner": {"temp": "/t"}, "github": PUSH}
    assert filled(gate["with"], contexts)["artefact"] == path
