"""The tests of the language, run a second time with the executor cuda."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from machine import NEEDS_GPU

FOLDER = Path(__file__).resolve().parents[1]
HOST_ALONE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("host_alone.toml").read_text())
"""By file, the tests that say something of the host alone, and why."""

FILES = (
    *(
        "test_division",
        "test_executor_faults",
        "test_executor_language",
        "test_executor_memory",
        "test_executor_numbers",
    ),
    *("test_executor_threads", "test_language_names", "test_language_programs", "test_language_table"),
    "test_language_threads",
)


@NEEDS_GPU
@pytest.mark.parametrize("name", FILES)
def test_language(name: str) -> None:
    left_out = [f"--deselect=ci/selftest/{name}.py::{test}" for test in HOST_ALONE.get(name, {})]
    command = (sys.executable, "-m", "pytest", "-n", "4", "-q", *left_out, f"ci/selftest/{name}.py")
    done = subprocess.run(
        command,
        cwd=FOLDER.parents[1],
        env=os.environ | {"MLX_ASSAY_SELFTEST_EXECUTOR": "cuda"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert "skipped" not in done.stdout.splitlines()[-1]


def test_every_test_that_is_left_out_is_there() -> None:
    for name, tests in HOST_ALONE.items():
        text = (FOLDER / f"{name}.py").read_text()
        for test in tests:
            assert f"def {test.partition('[')[0]}(" in text, f"{name}: {test} is no test any more"
