"""The bodies of the gate's steps on stand-ins: what is rendered, what is held against which policy, what is told."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from standin import STEPS, VERDICTS, Stage, parsed

RUN = {"GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "12"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_report_is_shown(stage: Stage) -> None:
    stage.put("mlx-assay")
    assert stage.run(STEPS / "render", REPORT="/r/g16.json").returncode == 0
    (arguments,) = stage.of("mlx-assay")
    asked = parsed(arguments)
    assert asked["report"] == "/r/g16.json"
    assert asked["html"] == "/r/g16.html"
    assert asked["summary"]
    assert asked["annotations"]


def gated(stage: Stage, code: int, **variables: str) -> int:
    """Runs the gate's step over two legs that were downloaded and one that was judged here."""
    reports = stage.temp / "mlx-assay" / "reports"
    for name in ("report-host/host.json", "report-metal/metal.json", "local.json", "report-host/machine.txt"):
        (reports / name).parent.mkdir(parents=True, exist_ok=True)
        (reports / name).write_text("{}")
    written = 'while [ "$1" != --markdown ]; do shift; done; echo told >"$2"'
    stage.put("mlx-assay", f"{written}\nexit {code}")
    stage.put("python", f'exec "{sys.executable}" "$@"')
    return stage.run(STEPS / "gate", POLICY="ci/gate.toml", **variables).returncode


@pytest.mark.parametrize("code", VERDICTS)
def test_the_gate_tells_its_verdict(code: int, stage: Stage) -> None:
    assert gated(stage, code) == (code if code in (0, 1, 2) else 3)
    assert stage.outputs == {"verdict": VERDICTS[code]}
    assert (stage.folder / "summary").read_text() == "told\n"


@pytest.mark.parametrize("code", [0, 1])
def test_the_gate_is_given_every_report_and_the_artefact(code: int, stage: Stage) -> None:
    artefact = stage.folder / "work" / "x-1.0.whl"
    artefact.write_bytes(b"released")
    assert gated(stage, code, COMMIT="c" * 40, ARTEFACT=str(artefact), **RUN) == code
    (arguments,) = stage.of("mlx-assay")
    asked = parsed(arguments)
    reports = stage.temp / "mlx-assay" / "reports"
    assert list(map(str, asked["reports"])) == [  # type: ignore[call-overload]
        str(reports / name) for name in ("local.json", "report-host/host.json", "report-metal/metal.json")
    ]
    assert str(asked["policy"]) == "ci/gate.toml"
    assert asked["mutants"] is None
    assert asked["commit"] == "c" * 40
    assert asked["url"] == "https://github.example/o/r/actions/runs/12"
    assert str(asked["artefact"]) == str(artefact)
    assert str(asked["predicate"]) == str(stage.temp / "mlx-assay" / "gate" / "predicate.json")
    told = {"name": "x-1.0.whl", "digest": "sha256:" + hashlib.sha256(b"released").hexdigest()}
    assert stage.outputs == {"verdict": VERDICTS[code], **(told if code == 0 else {})}


@pytest.mark.parametrize(("names", "code"), [(["x.whl"], 0), ([], 2), (["x.whl", "y.whl"], 2)])
def test_an_artifact_of_one_file_needs_no_name(names: list[str], code: int, stage: Stage) -> None:
    folder = stage.folder / "artefact"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    assert gated(stage, 0, ARTEFACT=f"{folder}/") == code
    assert stage.outputs.get("name") == ("x.whl" if code == 0 else None)


def test_a_gate_without_a_report_is_incomplete(stage: Stage) -> None:
    stage.put("mlx-assay")
    done = stage.run(STEPS / "gate", POLICY="ci/gate.toml")
    assert done.returncode == 3
    assert "not one leg left a report" in done.stderr
    assert stage.outputs == {"verdict": "incomplete"}
    assert stage.calls == []


@pytest.mark.parametrize(
    ("results", "devices", "code"),
    [
        ({"host": "success", "device": "success"}, "true", 0),
        ({"host": "success", "device": "skipped"}, "false", 0),
        ({"host": "success", "device": "skipped"}, "true", 3),
        ({"host": "skipped", "device": "skipped"}, "false", 3),
        ({"host": "success", "device": "success"}, "false", 3),
        ({"host": "failure", "device": "success"}, "true", 3),
        ({"host": "cancelled"}, "", 3),
        ({"host": "success"}, "", 0),
        ({}, "", 3),
    ],
)
def test_a_job_that_did_not_pass_fails_the_gate(results: dict[str, str], devices: str, code: int, stage: Stage) -> None:
    needs = ", ".join(f'"{name}": {{"result": "{result}", "outputs": {{}}}}' for name, result in results.items())
    done = stage.run(STEPS / "needs", NEEDS=f"{{{needs}}}", DEVICES=devices)
    assert done.returncode == code, done
    assert ("::error" in done.stdout) is (code != 0 and bool(results))
    assert ("no Metal device takes part" in done.stdout) is ("device" in results and devices != "true")


def test_a_shard_has_a_report_of_its_own(stage: Stage) -> None:
    stage.put("mlx-assay")
    assert stage.run(STEPS / "conformance", LEG="host", SHARD="2/8").returncode == 0
    (arguments,) = stage.of("mlx-assay")
    asked = parsed(arguments)
    assert asked["shard"] == "2/8"
    assert stage.outputs["name"] == "host-2-of-8"
    assert Path(stage.outputs["report"]).name == "host-2-of-8.json"


def test_a_report_of_mutants_is_handed_on(stage: Stage) -> None:
    assert gated(stage, 0, MUTANTS="/m/mutants.json") == 0
    (arguments,) = stage.of("mlx-assay")
    assert parsed(arguments)["mutants"] == "/m/mutants.json"


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("code", [0, 1, 3])
def test_faults_are_planted_in_what_has_changed(code: int, there: bool, stage: Stage) -> None:
    stage.put("mlx-assay", f"echo told\nexit {code}")
    stage.put("git", "" if there else "exit 1")
    assert stage.run(STEPS / "mutants", SINCE="c" * 40, SHARD="2/4", WORKERS="3").returncode == code
    (arguments,) = stage.of("mlx-assay")
    asked = parsed(arguments)
    assert asked["changed_since"] == ("c" * 40 if there else None)
    assert (asked["shard"], asked["n"]) == ((2, 4), 3)
    assert (stage.folder / "summary").read_text() == "```\ntold\n```\n"


def test_faults_are_planted_in_all_kernels_where_nothing_is_named(stage: Stage) -> None:
    stage.put("mlx-assay")
    assert stage.run(STEPS / "mutants").returncode == 0
    asked = parsed(stage.of("mlx-assay")[0])
    assert (asked["changed_since"], asked["shard"], asked["operations"]) == (None, None, [])
