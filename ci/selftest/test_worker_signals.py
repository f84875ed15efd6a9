"""The crew: an interruption of a run reaches its workers at once, and each of them once."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from mlx_assay.conformance.crew import DISTRIBUTION, SAME_SECONDS, Crew, once

WAITING = """
import signal, sys, time
print("here", flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(7)
"""


def waiting() -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def node(process: subprocess.Popen[str] | None) -> SimpleNamespace:
    """What xdist tells of a worker; one on another machine has no process here."""
    io = SimpleNamespace() if process is None else SimpleNamespace(popen=process)
    return SimpleNamespace(workerinput={}, gateway=SimpleNamespace(_io=io))


def test_an_interruption_reaches_every_worker_of_this_machine() -> None:
    crew = Crew()
    processes = [waiting(), waiting()]
    ended = waiting()
    ended.kill()
    ended.wait()
    members = [node(process) for process in (*processes, ended, None)]
    for member in members:
        crew.join(member, "worksteal")
    crew.interrupt()
    assert [process.wait(timeout=30) for process in processes] == [7, 7]
    assert {member.workerinput[DISTRIBUTION] for member in members} == {"worksteal"}
    for process in (*processes, ended):
        process.stdout.close()  # type: ignore[union-attr]


def test_one_ctrl_c_interrupts_once() -> None:
    now = [100.0]
    interrupt = once(lambda: now[0])
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGINT, None)
    now[0] += SAME_SECONDS / 2
    interrupt(signal.SIGINT, None)
    now[0] += SAME_SECONDS
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGINT, None)
