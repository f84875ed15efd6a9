"""Soak, the part for every change: runs that are struck, and full disks; ci/steps/soak strikes more often.

Whatever comes, what is left is a valid report that names what is missing, and nothing in it passed that never ran.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from striking import STAGE, STALE, Strike, faults, strikes, struck

from mlx_assay.conformance import session as sessions
from mlx_assay.conformance.crew import Crew, hear
from mlx_assay.conformance.nodes import FOLDER
from mlx_assay.conformance.options import Options
from mlx_assay.conformance.plugin import Controller
from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.session import Session
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE, EXIT_USAGE

STRIKES = [
    Strike(signal.SIGTERM, "command", 2, 0, 1.0),
    Strike(signal.SIGINT, "group", 2, 0, 0.6),
    Strike(signal.SIGHUP, "command", 2, 0),
    Strike(signal.SIGINT, "group", 2, 150),
    Strike(signal.SIGKILL, "command", 0, 300),
    Strike(signal.SIGKILL, "worker", 2, 200),
]
SMALL_BYTES = 192 << 10
CASES = 800
CASE = "apply_token_bitmask/bfloat16/mask/random?vocab=33&seed=0"


@pytest.mark.parametrize("strike", STRIKES, ids=str)
def test_a_struck_run_leaves_a_valid_report(tmp_path: Path, strike: Strike) -> None:
    left = struck(tmp_path, strike)
    assert faults(strike, left) == [], left.output
    assert len(left.judged) >= strike.cases


def test_a_collection_that_is_broken_off_declares_nothing() -> None:
    """pytest tells of what it has collected even where Ctrl-C left some of it."""
    declared: list[str] = []
    manager = SimpleNamespace(register=lambda plugin, name: None)
    asked = SimpleNamespace(stash=pytest.Stash(), getoption=lambda name: None, args=[], pluginmanager=manager)
    controller = Controller(cast(Any, asked))
    controller._session = cast(Any, SimpleNamespace(declare=declared.extend, declared=0))
    items = cast(
        Any, SimpleNamespace(items=[SimpleNamespace(nodeid=f"{FOLDER}/test_cases.py::test_mlx_assay[{CASE}]")])
    )
    controller.pytest_collection_finish(items)
    assert declared == []
    controller.pytest_collection_modifyitems()
    controller.pytest_collection_finish(items)
    assert declared == [CASE]


def test_ctrl_c_waits_until_every_worker_stands() -> None:
    held = lambda: signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())  # noqa: E731
    node = cast(Any, SimpleNamespace(workerinput={}, gateway=None))
    crew = Crew()
    crew.expect(2)
    try:
        assert held()
        crew.join(node, "load")
        assert held()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            crew.join(node, "load")
        assert not held()
    finally:
        hear()


def test_strikes_are_of_every_form_and_the_same_for_a_seed() -> None:
    drawn = list(strikes(50, 3))
    assert drawn == list(strikes(50, 3)) != list(strikes(50, 4))
    assert 0 < sum(strike.cases == 0 for strike in drawn) < 50
    assert len({(strike.number, strike.whom, strike.workers) for strike in drawn}) == 12


def staged(folder: Path, *words: str, preexec: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """A staged run in this process alone, of synthetic cases."""
    script = {"cases": CASES}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    added = {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": json.dumps(script)}
    command = [sys.executable, str(STAGE / "staged.py"), "run", "-n", "0", *words]
    return subprocess.run(command, cwd=folder, env=kept | added, preexec_fn=preexec, capture_output=True, text=True)


def limited() -> None:
    """No file of more than SMALL_BYTES can be written: an error, as a full disk gives one, in place of the signal."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_BYTES, SMALL_BYTES))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of SMALL_BYTES, where one may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_BYTES}", "soak", str(folder)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"NOT RUN: no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def held(done: subprocess.CompletedProcess[str], report: Path) -> None:
    """A run whose report found no room: exit code 3, in words, with what was known before on disk."""
    assert done.returncode == EXIT_INCOMPLETE, done.stdout + done.stderr
    assert "The report cannot be written to" in done.stderr
    assert "Traceback" not in done.stderr
    left = decode(report.read_bytes())
    assert (left.verdict, left.complete) == ("incomplete", False)
    assert left.totals.executed == len(left.cases) < CASES
    assert [path.name for path in report.parent.iterdir() if path.name.startswith(".")] == []


def test_a_full_disk_leaves_a_run_incomplete(tmp_path: Path, disk: Path) -> None:
    report = disk / "report.json"
    held(staged(tmp_path, "--report", str(report)), report)


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="NOT RUN: this system bounds no file")
def test_a_report_beyond_the_largest_file_leaves_a_run_incomplete(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(STALE)
    held(staged(tmp_path, "--report", str(report), preexec=limited), report)


def full(report: Report, path: Path) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_where_nothing_can_be_written_no_earlier_report_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    path.write_text(STALE)
    monkeypatch.setattr(sessions, "write", full)
    session = Session(Options(report=str(path)))
    session.begin()
    assert not path.exists()
    session.declare([CASE])
    report = session.finish()
    assert (session.failure, report.verdict) == (os.strerror(errno.ENOSPC), "incomplete")


def test_a_disk_that_has_room_again_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    session = Session(Options(report=str(path)))
    with monkeypatch.context() as patch:
        patch.setattr(sessions, "write", full)
        session.declare([CASE])
        assert session.failure
    session.lose(CASE, True, "died")
    assert (session.finish().complete, session.failure) == (True, "")
    assert decode(path.read_bytes()).complete


def test_a_request_that_cannot_be_meant_leaves_the_report_of_an_earlier_run(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(STALE)
    assert staged(tmp_path, "nothing/bfloat16", "--report", str(report)).returncode == EXIT_USAGE
    assert report.read_text() == STALE
