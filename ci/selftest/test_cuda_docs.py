"""The sanitizers: the page on the cuda executor holds their record's table, and their script says what it lacks."""

import subprocess
import sys
from pathlib import Path

import pytest

from mlx_assay.impl import executors

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_the_records() -> None:
    command = (sys.executable, "ci/sanitize/table.py", "ci/sanitize/record.json")
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made.count("\n") > 20
    assert made in (ROOT / "docs" / "cuda.md").read_text()


def sanitize(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "ci/sanitize", *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.skipif(not executors.available("cuda"), reason="for machines without an NVIDIA GPU")
def test_without_a_gpu_the_script_says_so(tmp_path: Path) -> None:
    done = sanitize(str(tmp_path / "out.json"))
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert done.stderr.startswith("ci/sanitize: Executor 'cuda' cannot run here: ")


def test_a_tool_that_there_is_not_is_usage(tmp_path: Path) -> None:
    done = sanitize(str(tmp_path / "out.json"), "--tools", "memcheck,leaks")
    assert done.returncode == 2
    assert "expected some of memcheck,racecheck,initcheck,synccheck but got 'leaks'" in done.stderr
