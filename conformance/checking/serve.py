"""The process that runs a script under the checker, and tells what is found as it is found."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import faulthandler
import fcntl
import os
import resource
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from types import TracebackType

import msgspec

from mlx_assay.conformance.capture.adoption import adopt
from mlx_assay.conformance.checking import offspring, places, sources
from mlx_assay.conformance.checking.protocol import (
    TEXT_LIMIT,
    Began,
    Ended,
    Message,
    Refused,
    Settings,
    Stumbled,
    line,
)
from mlx_assay.conformance.checking.report import Location, Problem
from mlx_assay.conformance.checking.target import NoTarget, target
from mlx_assay.conformance.checking.watch import Watch
from mlx_assay.impl import executors
from mlx_assay.impl.executors.observation import listening, observed


class Channel:
    """The pipe to the process that asked. What is forked from this one writes to it too, each line whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._threads = threading.RLock()
        self._processes = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        os.register_at_fork(after_in_child=self._forked)

    def send(self, message: Message) -> None:
        """Writes one line; silent where nobody listens any longer."""
        data = memoryview(line(message))
        with self._threads, contextlib.suppress(BrokenPipeError):
            fcntl.lockf(self._processes, fcntl.LOCK_EX)
            try:
                while data:
                    data = data[os.write(self._descriptor, data) :]
            finally:
                fcntl.lockf(self._processes, fcntl.LOCK_UN)

    def _forked(self) -> None:
        # Another thread may have held it when this process was forked.
        self._threads = threading.RLock()


class Stage:
    """A script under watch, from its begin to the end of its process."""

    def __init__(self, settings: Settings, channel: Channel) -> None:
        self._settings = settings
        self._channel = channel
        self._watch = Watch(settings, channel.send)
        self._process = os.getpid()
        self._contexts = contextlib.ExitStack()

    def run(self) -> None:
        """Runs the script. Its exit handlers and threads are watched too, so the end is told by an exit handler."""
        found = target(self._settings.target)
        if self._settings.profile:
            adopt(self._settings.profile)
        atexit.register(self._end)
        threading.excepthook = self._in_thread
        # Left by the exit handler: what still runs when the script's last line is done is watched too.
        self._contexts.enter_context(executors.host_metal())
        self._contexts.enter_context(observed(self._watch))
        self._contexts.enter_context(listening(self._watch.defined, self._watch.called))
        self._channel.send(Began(executors.describe("host")))
        try:
            found.run(self._settings.arguments)
        except NoTarget as error:
            self._channel.send(Refused(str(error)[:TEXT_LIMIT]))
        except SystemExit as error:
            self._exited(error)
        except BaseException as error:
            self._raised(error, error.__traceback__)

    def _end(self) -> None:
        self._contexts.close()
        if os.getpid() != self._process:
            return
        self._watch.finish()
        self._channel.send(Ended())

    def _stumble(self, what: str, message: str, location: Location | None = None) -> None:
        self._channel.send(Stumbled(Problem(what=what, message=message[:TEXT_LIMIT], location=location)))

    def _exited(self, error: SystemExit) -> None:
        if error.code is None or error.code == 0:
            return
        if not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
        self._stumble("exit", f"the script ended with status {error.code}", _place(error.__traceback__))

    def _raised(self, error: BaseException, trace: TracebackType | None) -> None:
        while trace is not None and places.ours(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        _end_outside(trace)
        with contextlib.suppress(Exception):
            traceback.print_exception(error.with_traceback(trace))
        what = "syntax" if isinstance(error, SyntaxError) else "exception"
        self._stumble(what, _described(error), _place(trace, error))

    def _in_thread(self, given: threading.ExceptHookArgs) -> None:
        if given.exc_value is None or isinstance(given.exc_value, SystemExit):
            return
        self._raised(given.exc_value, given.exc_traceback)


def _end_outside(trace: TracebackType | None) -> None:
    """Ends a traceback at its innermost line that is not of this suite's machinery."""
    last, at = None, trace
    while at is not None:
        last = at if not places.ours(at.tb_frame.f_code.co_filename) else last
        at = at.tb_next
    if last is not None:
        last.tb_next = None


def _described(error: BaseException) -> str:
    try:
        said = str(error).strip()
    except Exception:
        said = "(its text cannot be had)"
    return f"{type(error).__name__}: {said.splitlines()[0].rstrip(':')}" if said else type(error).__name__


def _place(trace: TracebackType | None, error: BaseException | None = None) -> Location | None:
    """The innermost line of the script's own side: the last one that is not this suite's."""
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return places.python_line(error.filename, error.lineno)
    found = None
    for frame, number in traceback.walk_tb(trace):
        if not places.ours(frame.f_code.co_filename):
            found = (frame.f_code.co_filename, number)
    return places.python_line(*found) if found else None


def main(descriptor: int, lifeline: int, parent: int, settings: str) -> None:
    """Runs what the settings name."""
    _end_with_parent(lifeline, parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(all_threads=False)
    # Asked for by the process that waits, before it ends a script that took too long.
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    # The checker names what this tells of.
    warnings.simplefilter("ignore", executors.DivergenceWarning)
    sources.listen()
    given = msgspec.json.decode(settings, type=Settings)
    channel = Channel(descriptor)
    offspring.adopt(given)
    Stage(given, channel).run()


def _end_with_parent(lifeline: int, parent: int) -> None:
    """Ends this process and all that it started once the one that asked is gone."""
    if sys.platform == "linux":
        death_signal = 1
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)

    def watch() -> None:
        os.read(lifeline, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
