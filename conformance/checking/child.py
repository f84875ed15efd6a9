"""The process of a script as the verb sees it: started, listened to, watched by the clock, ended for certain."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import msgspec

from mlx_assay.conformance.checking.protocol import LINE_LIMIT, Foul, Message, Settings, decode

START = "from mlx_assay.conformance.checking.serve import main; main({descriptor}, {lifeline}, {parent}, {settings!r})"
TICK_SECONDS = 0.1
"""How often the clock is looked at while nothing comes."""

LAST_WORDS_SECONDS = 0.5
"""What a process that took too long gets to print where it stands."""

MOST_CHUNKS = 1000
"""Reads of what a process left, lest one that outlives it in another group write for ever."""

_CHUNK = 1 << 16


class Child:
    """A script's process, in a session and process group of its own, its output on this one's standard error."""

    def __init__(self, settings: Settings) -> None:
        self._channel, descriptor = os.pipe()
        lifeline, self._lifeline = os.pipe()
        text = msgspec.json.encode(settings).decode()
        code = START.format(descriptor=descriptor, lifeline=lifeline, parent=os.getpid(), settings=text)
        self._buffer = bytearray()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=_error_output(),
                stderr=_error_output(),
                pass_fds=(descriptor, lifeline),
                start_new_session=True,
            )
        finally:
            os.close(descriptor)
            os.close(lifeline)
        os.set_blocking(self._channel, False)

    def messages(self) -> Iterator[Message | None]:
        """What the process tells, and None at each tick without; ends with the process. Foul: see there."""
        while True:
            open_ended = True
            if select.select([self._channel], [], [], TICK_SECONDS)[0]:
                open_ended = self._take()
            yield from self._lines()
            if not open_ended or self._process.poll() is not None:
                break
            yield None
        # It may have closed the channel alone.
        while self._process.poll() is None:
            time.sleep(TICK_SECONDS / 10)
            yield None
        yield from self.rest()

    def rest(self) -> Iterator[Message]:
        """What is left in the channel of a process that is gone."""
        for _ in range(MOST_CHUNKS):
            more = select.select([self._channel], [], [], 0)[0] and self._take()
            yield from self._lines()
            if not more:
                break

    def end(self, speak: bool = False) -> int | None:
        """Kills the process and all of its group; its status, negative for a signal. `speak`: with its last words."""
        if speak and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGUSR1)
                time.sleep(LAST_WORDS_SECONDS)
        status = self._process.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        return status

    def close(self) -> None:
        """Gives back what it was listened to by."""
        for descriptor in (self._channel, self._lifeline):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _take(self) -> bool:
        """Reads what is there; False at the end of the channel."""
        try:
            data = os.read(self._channel, _CHUNK)
        except BlockingIOError:
            return True
        self._buffer += data
        return bool(data)

    def _lines(self) -> Iterator[Message]:
        """The whole lines of the buffer; one that is not asked for stays in it."""
        while (end := self._buffer.find(b"\n")) >= 0:
            self._bounded(end)
            text = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            try:
                yield decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise Foul(f"a line that it never sends ({error})") from None
        self._bounded(len(self._buffer))

    def _bounded(self, size: int) -> None:
        if size > LINE_LIMIT:
            raise Foul(f"a line of more than {LINE_LIMIT} bytes")


def _error_output() -> int:
    """The descriptor of standard error: what the script prints keeps apart from what the verb prints."""
    try:
        return sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        return subprocess.DEVNULL


def signal_name(number: int) -> str:
    """SIGSEGV and the like."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
