"""A program from outside and the two pipes to it: started without a shell, spoken to in lines, ended for certain."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from mlx_assay.conformance.adapters.protocol import LINE_LIMIT
from mlx_assay.conformance.process.descendants import kill_all
from mlx_assay.conformance.quotation import legible

ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""Variables that a program gets beside those of its own folder: what finds runtimes and caches, and no secrets."""

LINE_SHOWN = 200
"""Characters of a program's line that a message shows."""

LIVENESS_SECONDS = 0.1
"""How often a silent program is looked at: its pipe may be held open by what it started."""

TICK_SECONDS = 0.005

EXIT_SECONDS = 2.0
"""How long a program has to end by itself, after `stop` or once it has closed its pipe."""


class Broken(Exception):
    """A program that cannot be spoken to any longer, and the verdict on the call during which that came out."""

    def __init__(self, verdict: Literal["error", "crashed", "timed-out"], message: str) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message


def shown(line: bytes | bytearray) -> str:
    """A line as messages quote it: cut, and fit for a terminal."""
    text = legible(line.decode("utf-8", "replace"), LINE_SHOWN)
    return f"{text!r}{'...' if len(line) > LINE_SHOWN else ''}"


class Channel:
    """One process: a line goes in, a line comes out.

    Its working directory is this process's own, its temporary files lie in `folder`, and its standard error is this
    process's or `errors`. With `alone` it leads a process group.
    """

    def __init__(self, argv: Sequence[str], folder: str, *, alone: bool = False, errors: int | None = None) -> None:
        self._buffer = bytearray()
        self._alone = alone
        self._ended = False
        try:
            self._process = subprocess.Popen(
                [found(argv[0]) or argv[0], *argv[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(folder),
                start_new_session=alone,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            text = f"Expected a program that can be started but got {argv[0]!r}: {reason}{nearby(argv[0])}"
            raise Broken("crashed", text) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._orders, self._replies = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._replies, False)
        self._poll = select.poll()
        self._poll.register(self._replies, select.POLLIN)

    @property
    def pid(self) -> int:
        """The program's process."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status once the program has ended, negative for a signal.

        Until `end` it is looked at without being reaped, so that the process's id and its group's stay this program's.
        """
        if self._process.returncode is None and hasattr(os, "waitid"):
            found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None:
                return None
            return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return self._process.poll()

    def send(self, line: bytes) -> None:
        """Writes one line; Broken where an answer lies there that nobody asked for, or nobody reads."""
        self.quiet()
        data = memoryview(line + b"\n")
        try:
            while data:
                data = data[os.write(self._orders, data) :]
        except BrokenPipeError:
            raise self._gone() from None

    def receive(self, deadline: float | None = None) -> bytes:
        """The next line without its break; Broken at the program's end, at the deadline, and for a line too long."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > LINE_LIMIT:
                raise Broken("error", f"Expected lines of at most {LINE_LIMIT} bytes but got {shown(self._buffer)}")
            if not self._take(deadline):
                raise self._gone()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        if end > LINE_LIMIT:
            raise Broken("error", f"Expected lines of at most {LINE_LIMIT} bytes but got {shown(line)}")
        return line

    def quiet(self) -> None:
        """Broken where the program has said something that nobody asked for."""
        with contextlib.suppress(BlockingIOError):
            self._buffer += os.read(self._replies, LINE_LIMIT)
        if self._buffer:
            line = bytes(self._buffer).partition(b"\n")[0]
            raise Broken("error", f"Expected one line an order on standard output but got {shown(line)} too")

    def end(self, farewell: bytes = b"", *, patient: bool = False) -> bool:
        """Says farewell, waits for the program to end, kills it if it does not; whether it ended by itself.

        Without a farewell it waits only if `patient`. A second call does nothing.
        """
        if self._ended:
            return False
        self._ended = True
        with contextlib.suppress(BrokenPipeError):
            if farewell:
                os.write(self._orders, farewell + b"\n")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        obeyed = (bool(farewell) or patient) and self._exits()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self._alone:
                kill_all(self._process.pid)
                os.killpg(self._process.pid, signal.SIGKILL)
            elif not obeyed:
                self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.stdout.close()
        return obeyed

    def _take(self, deadline: float | None) -> bool:
        """Waits for more of a line; False once none can come."""
        while True:
            left = LIVENESS_SECONDS if deadline is None else min(LIVENESS_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise Broken("timed-out", "No answer within the limit")
            if self._poll.poll(1000 * left + 1):
                break
            if self.status is not None and not self._poll.poll(0):
                return False
        data = os.read(self._replies, 1 << 16)
        self._buffer += data
        return bool(data)

    def _exits(self) -> bool:
        deadline = time.monotonic() + EXIT_SECONDS
        while self.status is None and time.monotonic() < deadline:
            time.sleep(TICK_SECONDS)
        return self.status is not None

    def _gone(self) -> Broken:
        code = self.status if self._exits() else None
        if code is None:
            how = "closed its standard output"
        elif code < 0:
            how = f"was killed by {_signal_name(-code)}"
        else:
            how = f"ended with exit code {code}"
        rest = f" after {shown(self._buffer)}, which has no line break" if self._buffer else ""
        return Broken("crashed", f"The program {how}{rest}")


def environment(folder: str, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a program finds in its environment."""
    return {name: given[name] for name in ENVIRONMENT if name in given} | dict.fromkeys(
        ("TMPDIR", "TMP", "TEMP"), folder
    )


def found(name: str) -> str | None:
    """The program by PATH, as a shell finds it."""
    return shutil.which(name)


def nearby(name: str) -> str:
    """Where npm puts a program of this name, which no PATH names, as the end of a message; empty if it is not there."""
    place = Path("node_modules", ".bin", name)
    if found(name) or Path(name).name != name or not shutil.which(place):
        return ""
    return f": {place} is one, name it so or put its folder on the PATH"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
