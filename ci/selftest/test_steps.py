"""The bodies of the workflows, run on stand-ins: what they call, what they tell, and that no failure is lost."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from standin import STEPS, VERDICTS, Stage, parsed

from mlx_assay.impl.executors.cache import cache_directory

COMMANDS = ("mlx-assay", "python", "python3", "sw_vers", "system_profiler", "sysctl", "uname", "git", "ruff", "pip")
REQUIRED = {
    "LEG": "g16",
    "REPORT": "/r/g16.json",
    "POLICY": "p.toml",
    "SEED": "7",
    "NEEDS": '{"a": {"result": "failure"}}',
}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def steps() -> list[Path]:
    return [*sorted(STEPS.iterdir()), STEPS.parent / "check"]


@pytest.mark.parametrize("step", [step for step in steps() if step.name != "seed"], ids=lambda step: step.name)
def test_a_command_that_fails_fails_the_step(step: Path, stage: Stage) -> None:
    for name in COMMANDS:
        stage.put(name, "exit 9")
    reports = stage.temp / "mlx-assay" / "reports" / "report-g16"
    reports.mkdir(parents=True)
    (reports / "g16.json").write_text("{}")
    if step.name == "needs":
        (stage.folder / "bin" / "python3").unlink()
    setup = {"REQUIREMENTS": "x"} if step.name == "subject" else {}
    done = stage.run(step, **REQUIRED, **setup)
    assert done.returncode not in (0, 126, 127), done
    assert stage.calls or step.name == "needs"


@pytest.mark.parametrize("code", VERDICTS)
def test_a_leg_tells_its_verdict(code: int, stage: Stage) -> None:
    stage.put("mlx-assay", f"exit {code}")
    done = stage.run(STEPS / "conformance", LEG="g16")
    report = stage.temp / "mlx-assay" / "reports" / "g16.json"
    assert done.returncode == (code if code in (0, 1, 2) else 3)
    assert stage.outputs == {
        "verdict": VERDICTS[code],
        "report": str(report),
        "folder": str(report.parent),
        "name": "g16",
    }


@pytest.mark.parametrize("code", VERDICTS)
def test_a_smoke_leg_may_differ_and_no_more(code: int, stage: Stage) -> None:
    stage.put("mlx-assay", f"exit {code}")
    done = stage.run(STEPS / "conformance", LEG="smoke", SMOKE="true")
    assert (done.returncode == 0) is (code in (0, 1))
    assert ("proves no bits" in done.stdout) is (code == 1)
    assert stage.outputs["verdict"] == VERDICTS[code]


@pytest.mark.parametrize(
    ("executor", "alive", "verdict"), [("metal", 0, 1), ("metal", 3, 3), ("host", 3, 1), ("", 3, 1)]
)
def test_a_device_that_a_run_has_wedged_differs_in_nothing(
    executor: str, alive: int, verdict: int, stage: Stage
) -> None:
    stage.put("mlx-assay", "exit 1")
    stage.put("python", f"exit {alive}")
    done = stage.run(STEPS / "conformance", LEG="g16", EXECUTOR=executor)
    assert (done.returncode, stage.outputs["verdict"]) == (verdict, VERDICTS[verdict])
    assert ("cannot be now" in done.stdout) is (verdict == 3)
    asked = [[str(STEPS.parent / "canary.py"), "--executor", "metal"]]
    assert stage.of("python") == (asked if executor == "metal" else [])
    smoke = stage.run(STEPS / "conformance", LEG="g16", EXECUTOR=executor, SMOKE="true")
    assert smoke.returncode == (3 if verdict == 3 else 0)


def test_a_leg_that_conforms_asks_no_canary(stage: Stage) -> None:
    stage.put("mlx-assay")
    stage.put("python", "exit 3")
    assert stage.run(STEPS / "conformance", LEG="g16", EXECUTOR="metal").returncode == 0
    assert stage.of("python") == []


def test_a_leg_asks_for_what_it_was_given(stage: Stage) -> None:
    stage.put("mlx-assay")
    hostile = "cmd: bun $(touch /tmp/x) 'a b'.ts"
    given = {
        "LEG": "host",
        "EXECUTOR": "host",
        "IMPLEMENTATION": hostile,
        "TIER": "full",
        "SEED": "20261130",
        "LIMIT": "90",
        "WORKERS": "2",
        "CHECKED": "true",
        "WITHOUT": "torch-reference stock-metal",
        "QUERIES": "*/bfloat16/*\n\nnormalized_argmax/*?tag=nan",
    }
    assert stage.run(STEPS / "conformance", **given).returncode == 0
    (arguments,) = stage.of("mlx-assay")
    asked = parsed(arguments)
    assert asked["leg"] == "host"
    assert asked["executor"] == "host"
    assert asked["implementation"] == hostile
    assert asked["tier"] == "full"
    assert asked["seed"] == 20261130
    assert asked["limit"] == 90
    assert asked["checked"]
    assert asked["bundles"] == str(stage.temp / "mlx-assay" / "reports" / "bundles")
    assert asked["n"] == 2
    assert asked["without"] == ["torch-reference", "stock-metal"]
    assert asked["queries"] == ["*/bfloat16/*", "normalized_argmax/*?tag=nan"]


@pytest.mark.parametrize("step", ["conformance", "canary"])
@pytest.mark.parametrize("validation", ["true", "false", ""])
def test_validation_reaches_the_process_that_makes_the_device(step: str, validation: str, stage: Stage) -> None:
    for name in ("mlx-assay", "python"):
        stage.put(name, "env | grep -E '^(MTL|METAL)_'; exit 0")
    done = stage.run(STEPS / step, LEG="metal", VALIDATION=validation)
    assert done.returncode == 0
    wanted = {
        "MTL_DEBUG_LAYER=1",
        "MTL_SHADER_VALIDATION=1",
        "MTL_SHADER_VALIDATION_REPORT_TO_STDERR=1",
        "MTL_SHADER_VALIDATION_ABORT_ON_FAULT=1",
        "METAL_DEVICE_WRAPPER_TYPE=1",
        "METAL_DEBUG_ERROR_MODE=0",
    }
    seen = set(done.stdout.splitlines())
    assert seen >= wanted if validation == "true" else not seen
    if step == "canary":
        planted = ["--planted" in call for call in stage.of("python")]
        assert planted == ([True, False] if validation == "true" else [False])


def test_the_canary_runs_on_this_machine(stage: Stage) -> None:
    stage.put("python", f'exec "{sys.executable}" "$@"')
    cache = str(cache_directory())
    done = stage.run(STEPS / "canary", EXECUTOR="host", DEVICE_CLASS="host-*", VALIDATION="true", MLX_ASSAY_CACHE=cache)
    assert done.returncode == 0, done
    assert "a planted stray store was seen" in done.stdout
    assert "8 rounds right" in done.stdout


def test_the_canary_holds_the_device_to_its_class(stage: Stage) -> None:
    stage.put("python")
    stage.run(STEPS / "canary", DEVICE_CLASS="g16")
    (call,) = stage.of("python")
    assert call == [str(STEPS.parent / "canary.py"), "--executor", "metal", "--device-class", "g16"]


@pytest.mark.parametrize("code", [0, 3])
def test_a_canary_that_fails_is_told_where_people_look(code: int, stage: Stage) -> None:
    stage.put("python", f"exit {code}")
    done = stage.run(STEPS / "canary")
    assert done.returncode == code
    assert ("::error title=canary::incomplete" in done.stdout) is (code == 3)


def test_the_seed_is_the_day_or_the_one_that_is_repeated(stage: Stage) -> None:
    before = datetime.now(UTC).strftime("%y%m%d00")
    assert stage.run(STEPS / "seed").returncode == 0
    assert stage.outputs["seed"] in (before, datetime.now(UTC).strftime("%y%m%d00"))
    assert "mlx-assay run --tier full --seed" in stage.run(STEPS / "seed", SEED="20260101").stdout
    assert stage.outputs["seed"] == "20260101"
    assert parsed(["run", "--seed", stage.outputs["seed"]])["seed"] == 20260101
    assert stage.run(STEPS / "seed", SEED="1; true").returncode == 2


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ("tests", ["-m", "pytest"]),
        ("exploration", ["--hypothesis-profile=mlx-assay-nightly", "--hypothesis-seed=7"]),
        ("wheel", ["--pyargs", "mlx_assay.conformance"]),
    ],
)
def test_what_pytest_is_asked(step: str, wanted: list[str], stage: Stage) -> None:
    stage.put("python", "exit ${CODE:-0}")
    environment(stage)
    done = stage.run(STEPS / step, SEED="7", CODE="0")
    assert done.returncode == 0, done
    assert set(wanted) <= set(stage.of("python")[-1])


def test_the_soak_strikes_as_often_and_as_drawn_as_it_is_told(stage: Stage) -> None:
    stage.put("python", "exit ${CODE:-0}")
    assert stage.run(STEPS / "soak", SEED="20260101", CODE="1").returncode == 1
    assert stage.of("python") == [[str(STEPS.parent / "soak.py"), "--strikes", "50", "--seed", "20260101"]]


def test_power_is_looked_for_among_the_cases_of_the_night_to_come(stage: Stage) -> None:
    stage.put("python", "exit ${CODE:-0}")
    assert stage.run(STEPS / "power", SEED="26113000", CODE="1").returncode == 1
    assert stage.of("python") == [[str(STEPS.parent / "power.py"), "--seeds", "26113100"]]


def environment(stage: Stage, version: str = "0.1.0") -> None:
    """A python3 whose venv holds stand-ins; its pip builds a wheel that is empty."""
    inner = stage.folder / "inner"
    wheel = 'case "$*" in *"pip wheel"*) while [ "$1" != --wheel-dir ]; do shift; done; : >"$2/mlx_assay-0.whl" ;; esac'
    stage.put("python", f"{wheel}\nexit ${{CODE:-0}}", at=inner)
    stage.put("mlx-assay", f"echo mlx-assay {version}, mlx 0.32.4", at=inner)
    stage.put("python3", f'for last; do :; done; mkdir -p "$last/bin"; cp "{inner}"/* "$last/bin"')


@pytest.mark.parametrize(
    ("install", "wanted"), [("wheel", "[all]"), ("", "[all]"), ("bare", ""), ("editable", "[all,test]")]
)
def test_what_is_installed(install: str, wanted: str, stage: Stage) -> None:
    environment(stage)
    done = stage.run(STEPS / "install", INSTALL=install, VERSION="0.1.0", TORCH_INDEX="https://index.example/cpu")
    root = STEPS.parents[1]
    assert done.returncode == 0, done
    calls = stage.of("python")
    assert calls[-1][-1] == f"{root}{wanted}"
    assert ("-e" in calls[-1]) is (install == "editable")
    assert calls[-1][calls[-1].index("-c") + 1] == str(root / "ci" / "constraints.txt")
    assert (stage.folder / "path").read_text().strip() == str(stage.temp / "mlx-assay" / "environment" / "bin")
    torch = [call for call in calls if any(argument.startswith("torch==") for argument in call)]
    assert len(torch) == (0 if install == "bare" else 1)


@pytest.mark.parametrize(
    ("variables", "code"),
    [({"VERSION": "0.2.0"}, 3), ({"VERSION": "0.1"}, 3), ({"INSTALL": "all"}, 2), ({"CODE": "1"}, 1)],
)
def test_an_install_that_is_not_what_was_asked(variables: dict[str, str], code: int, stage: Stage) -> None:
    environment(stage)
    done = stage.run(STEPS / "install", **variables)
    assert done.returncode == code
    assert (stage.folder / "path").read_text() == ""


def test_what_is_judged_is_prepared_in_its_folder(stage: Stage) -> None:
    stage.put("python", 'cat "$6"')
    script = stage.folder / "work" / "set up.sh"
    script.write_text('pwd >"$RUNNER_TEMP/where"')
    (stage.temp / "mlx-assay").mkdir()
    done = stage.run(STEPS / "subject", REQUIREMENTS="-e .\nnumpy", SETUP="set up.sh")
    assert done.returncode == 0, done
    assert done.stdout == "-e .\nnumpy\n"
    assert (stage.temp / "where").read_text().strip() == os.path.realpath(stage.folder / "work")
    script.write_text("exit 4")
    assert stage.run(STEPS / "subject", SETUP="set up.sh").returncode == 4
    assert stage.run(STEPS / "subject").returncode == 0


@pytest.mark.parametrize("system", ["Linux", "Darwin"])
def test_the_machine_is_written_down(system: str, stage: Stage) -> None:
    for name in ("sw_vers", "sysctl", "system_profiler", "mlx-assay"):
        stage.put(name, f"echo told by {name}")
    stage.put("uname", f"echo {system}")
    assert stage.run(STEPS / "machine").returncode == 0
    told = (stage.temp / "mlx-assay" / "reports" / "machine.txt").read_text()
    assert ("told by system_profiler" in told) is (system == "Darwin")
    assert "told by mlx-assay" in told
    assert ("no Metal compiler of Xcode" in told) is (system == "Darwin")
    assert stage.of("system_profiler") == ([["SPDisplaysDataType"]] if system == "Darwin" else [])
    stage.put("system_profiler", "exit 5")
    assert (stage.run(STEPS / "machine").returncode != 0) is (system == "Darwin")


@pytest.mark.parametrize(("newest", "code"), [("0.32.4", 0), ("9.0.0", 0), ("9.0.0", 1), ("9.0.0", 3)])
def test_the_newest_release_is_compared_with_the_pinned_one(newest: str, code: int, stage: Stage) -> None:
    told = f'{{"install": [{{"metadata": {{"version": "{newest}"}}}}]}}'
    report = f'while [ "$1" != --report ]; do shift; done; echo \'{told}\' >"$2"'
    stage.put("python", f'case "$1" in -m) {report} ;; *) exec "{sys.executable}" "$@" ;; esac')
    stage.put("mlx-assay", f'while [ "$1" != --markdown ]; do shift; done; echo drift >"$2"; exit {code}')
    done = stage.run(STEPS / "versions")
    assert done.returncode == code
    if newest == "0.32.4":
        assert "nothing was compared" in done.stdout
        assert stage.of("mlx-assay") == []
    else:
        assert parsed(stage.of("mlx-assay")[0])["words"] == ["0.32.4", "9.0.0"]
        assert (stage.folder / "summary").read_text() == "drift\n"


@pytest.mark.parametrize("code", [0, 1, 3])
def test_goldens_are_held_and_never_written(code: int, stage: Stage) -> None:
    stage.put("mlx-assay", f"exit {code}")
    assert stage.run(STEPS / "fixtures").returncode == code
    (arguments,) = stage.of("mlx-assay")
    assert parsed(arguments)["action"] == "check"
