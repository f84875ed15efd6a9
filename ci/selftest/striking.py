"""Strikes: a staged run is hit by a signal at some moment, and what it leaves behind is held to what it did."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import synthetic

from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE, Verdict

STAGE = Path(__file__).parent
CASES = synthetic.A_ROW
SECONDS_A_CASE = 0.005
PATIENCE = 120.0
STALE = "an earlier run"


@dataclass(frozen=True)
class Strike:
    """A signal, to the command alone or to its whole process group, `seconds` after so many cases were judged.

    With `whom` "worker" or "every worker" it goes to processes that judge.
    """

    number: signal.Signals
    whom: str
    workers: int
    cases: int
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.number.name} to {self.whom}, -n {self.workers}, {self.cases} cases and {self.seconds:.2f} s"


@dataclass(frozen=True)
class Aftermath:
    """What a struck run left: exit code, report, the cases that its judges say they judged, output."""

    code: int
    report: Report
    judged: frozenset[str]
    output: str
    gone: bool
    seconds: float
    """From the strike to the end."""


def strikes(count: int, seed: int) -> Iterator[Strike]:
    """Random ones, the same for a seed, a third of them before any case; of each form at least one from 12 on."""
    drawn = random.Random(seed)
    forms = [
        (signal.SIGINT, "command", 2),
        (signal.SIGINT, "group", 2),
        (signal.SIGTERM, "command", 2),
        (signal.SIGKILL, "command", 2),
        (signal.SIGINT, "command", 0),
        (signal.SIGTERM, "command", 0),
        (signal.SIGKILL, "command", 0),
        (signal.SIGKILL, "worker", 2),
        (signal.SIGSEGV, "worker", 2),
        (signal.SIGKILL, "every worker", 2),
        (signal.SIGTERM, "group", 2),
        (signal.SIGHUP, "command", 2),
    ]
    for place in range(count):
        number, whom, workers = forms[place % len(forms)]
        early = drawn.random() < 1 / 3
        cases, seconds = (0, drawn.uniform(0, 2)) if early else (drawn.randrange(1, CASES), drawn.uniform(0, 0.05))
        yield Strike(number, whom, workers, cases, seconds)


def struck(folder: Path, strike: Strike) -> Aftermath:
    """Starts a run over a report of an earlier one, strikes it, and waits for its end."""
    report, journal = folder / "report.json", folder / "journal.txt"
    report.write_text(STALE)
    journal.touch()
    script = {"cases": CASES, "seconds": SECONDS_A_CASE, "journal": str(journal)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    staged = {"PYTHONPATH": str(STAGE), "PYTEST_PLUGINS": "staged", "MLX_ASSAY_STAGE": json.dumps(script)}
    command = [sys.executable, str(STAGE / "staged.py"), "run", "-n", str(strike.workers), "--report", str(report)]
    with (folder / "output.txt").open("w") as output:
        run = subprocess.Popen(
            command, cwd=folder, env=kept | staged, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait(run, lambda: report.read_text() != STALE)
        _wait(run, lambda: journal.read_text().count("\n") >= strike.cases)
        time.sleep(strike.seconds)
        _hit(run, strike)
        began = time.monotonic()
        code = run.wait(PATIENCE)
        seconds = time.monotonic() - began
        said = (folder / "output.txt").read_text()
        judged = frozenset(journal.read_text().split("\n")) - {""}
        return Aftermath(code, decode(report.read_bytes()), judged, said, group_is_gone(run.pid), seconds)
    finally:
        if run.poll() is None or not group_is_gone(run.pid):
            os.killpg(run.pid, signal.SIGKILL)


def faults(strike: Strike, left: Aftermath) -> list[str]:
    """What the aftermath of a strike breaks; empty where all holds."""
    report, said = left.report, []
    recorded = {record.id for record in report.cases if record.verdict is not Verdict.CRASHED}
    if len(report.cases) != report.totals.executed or report.totals.declared not in (0, CASES):
        said.append(f"counts: {len(report.cases)} records, {report.totals}")
    if recorded - left.judged:
        said.append(f"passed and never ran: {sorted(recorded - left.judged)[:3]}")
    if not left.gone:
        said.append("processes stay behind")
    unborn = strike.whom in ("worker", "every worker") and not report.totals.declared and left.code == EXIT_INCOMPLETE
    # xdist has no word but a traceback for a worker that dies before it stands.
    if ("INTERNALERROR" in left.output or "Traceback" in left.output) and not unborn:
        said.append(f"a traceback: {left.output[-2000:]}")
    whole = report.complete and report.totals.executed == CASES
    if whole != (left.code in (EXIT_CONFORMS, 1)) and strike.number is not signal.SIGKILL:
        said.append(f"exit code {left.code} of a run that is {'whole' if whole else 'not whole'}")
    if strike.whom in ("worker", "every worker") and not unborn:
        # xdist replaces it: one case is lost a worker, and named.
        crashed = report.totals.crashed
        if not whole or crashed > strike.workers:
            said.append(f"{crashed} crashed, {report.totals.executed} executed of {report.totals.declared}")
    elif not whole and report.verdict != "incomplete":
        said.append(f"verdict {report.verdict}")
    elif strike.number is not signal.SIGKILL and left.code not in (EXIT_CONFORMS, EXIT_INCOMPLETE):
        said.append(f"exit code {left.code}")
    return said


def _wait(run: subprocess.Popen[bytes], reached: Callable[[], bool]) -> None:
    """Until a run has got so far, or is at its end."""
    deadline = time.monotonic() + PATIENCE
    while not reached() and run.poll() is None:
        if time.monotonic() > deadline:
            raise AssertionError("the run does not go on")
        time.sleep(0.02)


def _hit(run: subprocess.Popen[bytes], strike: Strike) -> None:
    if strike.whom == "command":
        run.send_signal(strike.number)
    elif strike.whom == "group":
        with suppress(ProcessLookupError):
            os.killpg(run.pid, strike.number)
    else:
        workers = _workers(run)
        for worker in workers if strike.whom == "every worker" else workers[:1]:
            with suppress(ProcessLookupError):
                os.kill(worker, strike.number)


def _workers(run: subprocess.Popen[bytes]) -> list[int]:
    """The processes that judge: children of the command, once there are any."""
    found: list[int] = []

    def listed() -> bool:
        rows = subprocess.run(["ps", "-axwwo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        for pid, parent, words in (row.split(None, 2) for row in rows.splitlines()):
            if int(parent) == run.pid and "sys.stdin.readline" in words:
                found.append(int(pid))
        return bool(found)

    _wait(run, listed)
    return found


def group_is_gone(group: int) -> bool:
    """Whether a process group has ended, after 20 seconds at most."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
