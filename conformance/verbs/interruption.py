"""Signals that end a command as Ctrl-C does, so that what it knows by then is not lost."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGTERM,) if sys.platform == "win32" else (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into KeyboardInterrupt."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    with _handled(_NUMBERS, interrupt):
        yield


@contextmanager
def postponed() -> Iterator[Callable[[], bool]]:
    """Keeps these signals, and Ctrl-C, from raising anywhere; gives a function that tells whether one has come.

    For a loop that would lose what it holds if it were left at any line.
    """
    come: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        come.append(number)

    with _handled((*_NUMBERS, signal.SIGINT), note):
        yield lambda: bool(come)


@contextmanager
def _handled(numbers: tuple[signal.Signals, ...], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, own in before.items():
            signal.signal(number, own)
