"""A run that is cut short: its report tells what was executed, and no process stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from striking import group_is_gone

from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

STAGE = Path(__file__).parent
QUERY = "normalized_argmax/*?tag=nan"
PATIENCE = 60.0
SECONDS_A_CASE = 0.5


def started(folder: Path, workers: int) -> subprocess.Popen[str]:
    """A run with the stage up, slow enough to be cut short, in a process group of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    staged = {
        "PYTHONPATH": str(STAGE),
        "PYTEST_PLUGINS": "staged",
        "MLX_ASSAY_STAGE": json.dumps({"seconds": SECONDS_A_CASE}),
    }
    return subprocess.Popen(
        [sys.executable, str(STAGE / "staged.py"), "run", QUERY, "-n", str(workers)],
        cwd=folder,
        env=kept | staged,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def on_disk(folder: Path) -> Report | None:
    path = folder / "mlx-assay-report.json"
    return decode(path.read_bytes()) if path.exists() else None


def wait_for_records(run: subprocess.Popen[str], folder: Path) -> Report:
    """Until the refreshed report on disk holds a record."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and run.poll() is None:
        found = on_disk(folder)
        if found and found.totals.executed:
            return found
        time.sleep(0.1)
    raise AssertionError(f"no record within {PATIENCE} s: {run.communicate()[0] if run.poll() is not None else ''}")


@pytest.mark.parametrize(
    ("number", "whole_group", "workers"),
    [(signal.SIGINT, True, 2), (signal.SIGINT, False, 2), (signal.SIGTERM, False, 2), (signal.SIGINT, False, 0)],
    ids=["ctrl-c", "parent-alone", "terminated", "in-process"],
)
def test_an_interrupted_run_leaves_a_valid_report(
    tmp_path: Path, number: signal.Signals, whole_group: bool, workers: int
) -> None:
    run = started(tmp_path, workers)
    try:
        before = wait_for_records(run, tmp_path)
        (os.killpg if whole_group else os.kill)(run.pid, number)
        said, _ = run.communicate(timeout=PATIENCE)
        report = on_disk(tmp_path)
        assert report is not None
        assert run.returncode == EXIT_INCOMPLETE, said
        assert report.totals.declared == len(select([QUERY]).cases)
        assert before.totals.executed <= report.totals.executed == len(report.cases) < report.totals.declared
        assert (report.complete, report.verdict) == (False, "incomplete")
        assert f"{report.totals.declared - report.totals.executed} cases did not run" in said
        assert "INTERNALERROR" not in said
        assert group_is_gone(run.pid)
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)


def test_a_killed_run_leaves_the_last_refreshed_report(tmp_path: Path) -> None:
    run = started(tmp_path, 2)
    try:
        before = wait_for_records(run, tmp_path)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate(timeout=PATIENCE)
        report = on_disk(tmp_path)
        assert report is not None
        assert report.totals.executed >= before.totals.executed > 0
        assert (report.complete, report.verdict) == (False, "incomplete")
        assert group_is_gone(run.pid)
    finally:
        if not group_is_gone(run.pid):
            os.killpg(run.pid, signal.SIGKILL)
