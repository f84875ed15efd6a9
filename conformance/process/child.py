"""A child process as the judge sees it: started, spoken to with a deadline, listened to, ended for certain."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from mlx_assay.conformance.adapters import folder
from mlx_assay.conformance.process import arena
from mlx_assay.conformance.process.descendants import kill_all
from mlx_assay.conformance.process.protocol import LINE_LIMIT, Leave, decode_reply, line
from mlx_assay.conformance.process.transcript import Transcript
from mlx_assay.conformance.verdict import Verdict

OUTPUT_SHOWN = 2000
"""Characters of a child's output that a message shows, at most."""

LINES_SHOWN = 16
"""Lines of it that a message shows, at most."""

LEAVE_SECONDS = 3.0
"""How long a child may take to end a program from outside in peace."""

LIVENESS_SECONDS = 0.1
"""How often a silent child is looked at: its pipe may be held open by what it started."""

START = "from mlx_assay.conformance.process.serve import main; main({orders}, {replies}, {arena}, {lifeline}, {parent})"


class Death(Exception):
    """A child that serves no longer, and the verdict on the case during which it ended."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict = verdict
        self.message = message


class Child:
    """One process in a group of its own, with pipes to speak, a file for tensors, and a listener to its output.

    `hosting`: a program from outside runs under it, in a `folder` that is made for it and removed at the end.
    `start` is the program that serves, `decode` reads its replies.
    """

    def __init__(
        self, *, hosting: bool = False, start: str = START, decode: Callable[[bytes], Any] = decode_reply
    ) -> None:
        self.folder = folder.create() if hosting else ""
        self.arena = arena.create()
        orders, self._orders = os.pipe()
        self._replies, replies = os.pipe()
        lifeline, self._lifeline = os.pipe()
        passed = (orders, replies, self.arena, lifeline)
        code = start.format(orders=orders, replies=replies, arena=self.arena, lifeline=lifeline, parent=os.getpid())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-u", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=passed,
                start_new_session=True,
            )
        finally:
            for descriptor in (orders, replies, lifeline):
                os.close(descriptor)
        for descriptor in (self._orders, self._replies):
            os.set_blocking(descriptor, False)
        self._decode = decode
        self._lines: deque[bytes] = deque()
        self._buffer = bytearray()
        assert self._process.stdout is not None
        self.transcript = Transcript(os.dup(self._process.stdout.fileno()))
        self._process.stdout.close()
        owned = (self._orders, self._replies, self._lifeline, self.arena)
        self._end = weakref.finalize(self, _end, self._process, owned, self.folder, os.getpid())

    @property
    def output(self) -> str:
        """The last that the child printed, fit to be shown."""
        return "\n".join(self.transcript.text(0, OUTPUT_SHOWN).splitlines()[-LINES_SHOWN:])

    def end(self) -> None:
        """Kills the process, its group and, on Linux, whatever else it started, and gives everything back."""
        self._end()
        self.transcript.close()

    def leave(self) -> None:
        """Lets a program from outside end by itself, for a while. The process stays, to keep its orphans."""
        deadline = time.monotonic() + LEAVE_SECONDS
        with contextlib.suppress(Death):
            self.send(Leave(), deadline)
            self.receive(deadline)

    def send(self, order: msgspec.Struct, deadline: float) -> None:
        """Sends one line, or raises Death."""
        data = memoryview(line(order))
        poll = select.poll()
        poll.register(self._orders, select.POLLOUT)
        while data:
            try:
                data = data[os.write(self._orders, data) :]
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._overdue() from None
                poll.poll(LIVENESS_SECONDS * 1000)
            except BrokenPipeError:
                raise self._gone() from None

    def pending(self) -> bool:
        """Takes in what has come, without waiting; whether a line or a part of one is there."""
        self._take()
        return bool(self._lines or self._buffer)

    def receive(self, deadline: float) -> Any:
        """The next reply, or Death: by its own end, by the deadline, or by a line that the server never sends."""
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        while not self._lines:
            open_ended = self._take()
            if self._lines:
                break
            if not open_ended or self._ended():
                if self._take() and self._lines:
                    break
                raise self._gone()
            left = deadline - time.monotonic()
            if left <= 0:
                raise self._overdue()
            poll.poll(min(left, LIVENESS_SECONDS) * 1000 + 1)
        try:
            return self._decode(self._lines.popleft())
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self.foul(f"a line that the server never sends ({error})") from None

    def lost(self, verdict: Verdict, message: str) -> Death:
        """Ends a child whose program from outside serves no longer."""
        self.end()
        return Death(verdict, f"{message}{self._said()}")

    def foul(self, what: str) -> Death:
        """Ends a child whose channel carries what it must not."""
        self.end()
        return Death(Verdict.ERROR, f"Expected the server's replies alone on the judge's channel but got {what}")

    def _take(self) -> bool:
        """Reads what is there; False at the end of the pipe."""
        while True:
            try:
                data = os.read(self._replies, 1 << 16)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._buffer += data
            *lines, rest = self._buffer.split(b"\n")
            self._lines.extend(bytes(text) for text in lines)
            self._buffer = bytearray(rest)
            if len(self._buffer) > LINE_LIMIT or len(self._lines) > LINE_LIMIT:
                raise self.foul(f"a line of more than {LINE_LIMIT} bytes")

    def _ended(self) -> bool:
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        return self._process.poll() is not None

    def _gone(self) -> Death:
        """How the process ended; one that only closed its pipe is ended here."""
        patience = time.monotonic() + 1
        while not self._ended() and time.monotonic() < patience:
            time.sleep(0.005)
        closed = not self._ended()
        self.end()
        code = self._process.returncode
        if closed:
            how = "closed the judge's channel"
        elif code is not None and code < 0:
            how = f"was killed by {_signal_name(-code)}"
        else:
            how = f"ended with exit code {code}"
        return Death(Verdict.CRASHED, f"The implementation's process {how}{self._said()}")

    def _overdue(self) -> Death:
        self.end()
        return Death(Verdict.TIMED_OUT, f"No answer within the limit, killed{self._said()}")

    def _said(self) -> str:
        output = self.output
        return f"; it printed last:\n{output}" if output else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end(process: subprocess.Popen[bytes], descriptors: tuple[int, ...], scratch: str, owner: int) -> None:
    """Kills the whole group before its leader is waited for, so that the group's id is still ours."""
    if os.getpid() != owner:
        return
    kill_all(process.pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(5)
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    if scratch:
        folder.remove(scratch)
