"""Faults in kernels that a module of others launches: their own tests notice them, or the cases of their operations."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mlx_assay.conformance.cli import main
from mlx_assay.conformance.mutation.foreign.faults import faults
from mlx_assay.conformance.mutation.foreign.noticing import OBSERVED, observed
from mlx_assay.conformance.mutation.foreign.plant import Launched, Order, Planter
from mlx_assay.fixtures.case import Case
from mlx_assay.impl.executors.signature import Definition

TESTS = """
import numpy as np
import pytest

@pytest.fixture
def clip(host_metal):
    import mlx.core as mx
    return mx.fast.metal_kernel(
        name="clip", input_names=["x"], output_names=["y"],
        source="uint i = thread_position_in_grid.x;\\ny[i] = x[i] > 2.0f ? 2.0f : x[i];",
    )

def test_clips(clip):
    import mlx.core as mx
    x = mx.array([1.0, 3.0, 2.0, 0.5])
    (y,) = clip(inputs=[x], output_shapes=[(4,)], output_dtypes=[mx.float32], grid=(4, 1, 1), threadgroup=(4, 1, 1))
    assert np.array_equal(np.array(y), WANT)
"""
WANT = "WANT = [1.0, 2.0, 2.0, 0.5]\n"


def mutate(*arguments: str, folder: Path) -> tuple[int, dict[str, object]]:
    target = folder / "mutants.json"
    code = main(["mutate", *arguments, "--json", str(target)])
    read: dict[str, object] = json.loads(target.read_text()) if target.exists() else {}
    return code, read


def command(path: Path) -> str:
    return f"pytest -q -p no:cacheprovider -p no:xdist --rootdir={path.parent} {path}"


def test_their_tests_kill_what_they_notice_and_the_rest_survives(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_clip.py"
    path.write_text(WANT + TESTS)
    code, read = mutate("clip", "--operator", "comparison-strictness", "--tests", command(path), folder=tmp_path)
    # At 2 both arms are 2: no test can tell.
    assert (code, read["totals"]) == (
        1,
        {"case": 0, "test": 0, "checker": 0, "compilation": 0, "equivalent": 0, "survived": 1},
    )
    assert "+y[i] = x[i] >= 2.0f ? 2.0f : x[i];\n" in capsys.readouterr().out
    code, read = mutate("--operator", "arms-swapped", "--tests", command(path), folder=tmp_path)
    (row,) = read["mutants"]  # type: ignore[misc]
    assert (code, row["outcome"], row["operation"]) == (0, "killed", "clip")
    assert row["killed_by"].startswith("test: ")
    assert row["killed_by"].endswith("test_clip.py::test_clips")


def test_tests_that_fail_anyhow_or_launch_nothing_tell_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_clip.py"
    path.write_text(WANT.replace("0.5", "0.75") + TESTS)
    assert mutate("--tests", command(path), folder=tmp_path)[0] == 3
    assert "Expected tests that pass without a fault but got test: " in capsys.readouterr().err
    path.write_text("def test_nothing():\n    assert not []\n")
    assert mutate("--tests", command(path), folder=tmp_path)[0] == 3
    assert "there were none: on one without Metal, tests need the fixture host_metal" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("pytest nowhere.py", ("exit code 4", "file or directory not found: nowhere.py")),
        ("sh -c 'echo here it ends; kill -SEGV $$'", ("crash (SIGSEGV)", "here it ends")),
        ("sh -c 'exit 134'", ("crash (SIGABRT)",)),
        ("sh -c 'exit 140'", ("exit code 140",)),
    ],
)
def test_how_a_command_of_tests_ended_is_told(
    words: str,
    told: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["mutate", "--tests", words]) == 3
    said = capsys.readouterr().err
    assert f"Expected tests that pass without a fault but got test: {told[0]}: mend them first" in said
    assert all(part in said for part in told)


def test_cases_notice_faults_in_the_kernels_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_kernels.py").write_text("from mlx_assay.impl import trellis_code_values\n")
    monkeypatch.syspath_prepend(tmp_path)
    chosen = ("--implementation", "their_kernels", "--operator", "arithmetic-swapped", "--sample", "2")
    code, read = mutate(*chosen, folder=tmp_path)
    rows: list[dict[str, str]] = read["mutants"]  # type: ignore[assignment]
    killed = [row["killed_by"] for row in rows if row["outcome"] == "killed"]
    assert code == (0 if len(killed) == 2 else 1)
    assert killed
    assert all(by.startswith("trellis_code_values/") for by in killed)
    assert "their_kernels" not in sys.modules


def test_kernels_of_every_operation_are_seen_and_operations_without_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two_kernels.py").write_text(
        "from mlx_assay.impl import trellis_code_values, trellis_fold\n\n"
        "def factored_row(*arguments):\n    raise ValueError('not written yet')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    page = tmp_path / "mutants.html"
    chosen = ("--implementation", "two_kernels", "--operator", "axis-mistaken", "--html", str(page))
    code, read = mutate(*chosen, folder=tmp_path)
    rows: list[dict[str, str]] = read["mutants"]  # type: ignore[assignment]
    assert (code, [row["operation"] for row in rows]) == (0, ["trellis_code_values", "trellis_fold"])
    assert read["unlaunched"] == ["factored_row"]
    assert capsys.readouterr().out.count("no kernel was seen of factored_row: ") == 2
    assert "No kernel was seen of factored_row: " in page.read_text()


def test_launches_are_looked_at_in_all_dtypes_and_from_all_over_their_cases() -> None:
    many = [Case.make("mask", "float16", "shape", {"seed": seed}) for seed in range(4 * OBSERVED)]
    few = [Case.make("mask", "int32", "shape", {"seed": seed}) for seed in range(2)]
    other = [Case.make("argmax", "float16", "shape", {"seed": 0})]
    found = observed([*many, *few, *other])
    assert found == {"mask": [*many[::4], *few], "argmax": other}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--implementation", "cmd: bun kernels.ts"], 2, "Expected a module, or module:object"),
        (["--implementation", "nowhere_at_all"], 2, "but 'nowhere_at_all' failed: ModuleNotFoundError: No module"),
        (["--implementation", "json:nowhere"], 2, "but 'json:nowhere' failed: AttributeError: "),
        (["--implementation", "json"], 2, "Expected 'json' to have a function of apply_token_bitmask, "),
        (["--tests", ""], 2, "Expected a command that runs tests, as in 'pytest tests', but got ''"),
        (["--tests", "pytest 'unclosed"], 2, "No closing quotation"),
        (
            ["--tests", "no-such-command"],
            2,
            "Expected a command that runs tests but 'no-such-command' is no program here",
        ),
        (["--tests", "pytest", "--operator", "launcher-order"], 2, "Expected an operator on Metal text"),
        (["--tests", "pytest", "--implementation", "json"], 2, "Expected --implementation or --tests but got both"),
        (["--tests", "pytest", "--judge"], 2, "Expected --judge or --implementation"),
        (["--tests", "pytest", "--changed-since", "HEAD"], 2, "Expected --changed-since without"),
    ],
)
def test_a_choice_that_cannot_be_meant(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutate", *arguments]) == code
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_a_fault_is_planted_in_its_own_kernel_alone() -> None:
    kernels = [Launched("one", "y[i] = a + b;", ""), Launched("one", "y[i] = a - b;", "")]
    found = faults(kernels)
    assert len({fault.mutant.id for fault in found}) == len(found)
    (fault,) = (one for one in found if one.mutant.text == "y[i] = a - b;")
    planter = Planter(fault.order(Path("answer")))
    made = [planter.made(Definition(one.name, (), ("y",), one.source)).source for one in kernels]
    assert made == ["y[i] = a - b;", "y[i] = a - b;"]
    assert Planter(Order()).made(Definition("one", (), ("y",), "y[i] = a + b;")).source == "y[i] = a + b;"


def test_what_is_launched_is_written_down_once(tmp_path: Path) -> None:
    planter = Planter(Order(record=str(tmp_path)))
    for _ in range(2):
        planter.launched(Definition("one", (), ("y",), "y[0] = 1;"))
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text()) == {"name": "one", "source": "y[0] = 1;", "header": ""}
