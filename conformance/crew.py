"""The crew: the processes that xdist starts to judge, which an interruption of the run reaches at once."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

DISTRIBUTION = "mlx_assay_dist"
SAME_SECONDS = 3.0
"""A terminal's Ctrl-C reaches a worker by itself, and once more through the controller: the second is the same one.

Below the 5 seconds after which execnet interrupts a worker that goes on.
"""


class Crew:
    """Passes an interruption on, which execnet would do after 5 seconds in which the workers judge for nobody."""

    def __init__(self, asked: bool = True) -> None:
        self._gateways: list[Any] = []
        self._asked = asked
        self._expected = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[object]) -> None:
        """Workers are about to start, of a run that is about cases of this suite."""
        if self._asked:
            self.expect(len(specs))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """A worker has started."""
        self.join(node, node.config.getoption("dist", "no"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Whatever became of the workers, Ctrl-C is heard again."""
        hear()

    def expect(self, count: int) -> None:
        """So many workers are about to start: until the last of them joins, this process holds Ctrl-C back.

        They inherit that until pytest stands in them, and are not struck while they import what it needs: Python has
        no word for that but a traceback.
        """
        self._expected = count
        _held(True)

    def join(self, node: Any, distribution: str) -> None:
        """Takes a worker in, and tells it how cases are spread, which xdist keeps from it."""
        node.workerinput[DISTRIBUTION] = distribution
        self._gateways.append(node.gateway)
        if len(self._gateways) == self._expected:
            hear()

    def interrupt(self) -> None:
        """Interrupts the workers of this machine."""
        for gateway in self._gateways:
            process = getattr(getattr(gateway, "_io", None), "popen", None)
            if process is not None and process.poll() is None:
                with suppress(OSError):
                    process.send_signal(signal.SIGINT)


def hear() -> None:
    """Lets Ctrl-C through again; one that was held back comes now."""
    _held(False)


def _held(back: bool) -> None:
    if hasattr(signal, "pthread_sigmask") and threading.current_thread() is threading.main_thread():
        signal.pthread_sigmask(signal.SIG_BLOCK if back else signal.SIG_UNBLOCK, {signal.SIGINT})


def drain(session: Any) -> None:
    """Has xdist's session take the reports that came in and wait, lest what was judged by then be lost."""
    queue = getattr(session, "queue", None)
    while queue is not None and not queue.empty():
        name, told = queue.get_nowait()
        if name == "testreport":
            session.worker_testreport(**told)


def once(clock: Callable[[], float] = time.monotonic) -> Callable[[int, FrameType | None], None]:
    """A handler of SIGINT that raises KeyboardInterrupt, but not twice within SAME_SECONDS."""
    last: list[float] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        now = clock()
        if last and now - last[-1] < SAME_SECONDS:
            return
        last.append(now)
        raise KeyboardInterrupt

    return interrupt


def enlist() -> None:
    """Prepares this process, a worker that has collected its cases, to judge them.

    One Ctrl-C interrupts it once. What was imported and collected leaves the sight of Python's garbage collector, which
    looks through all of it ten times when pytest ends: no part of it is garbage before.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, once())
    gc.collect()
    gc.freeze()
