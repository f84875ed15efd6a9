"""Progress of a campaign: a bar on a terminal, plain lines elsewhere, and each fault as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.sweeping.chunk import Chunk

LINE_SECONDS = 10.0
LINE_SHARE = 0.1


def differing(places: int) -> str:
    """How many places differ, in words."""
    return f"{counted(places, 'place')} {'differs' if places == 1 else 'differ'}"


class Screen(Protocol):
    """What shows progress."""

    def started(self, asked: int, judged: int) -> None:
        """`judged` of the inputs asked for have been judged before."""

    def judged(self, chunk: Chunk) -> None:
        """One more chunk."""

    def finished(self) -> None:
        """No more will come."""

    def say(self, text: str) -> None:
        """A line of its own."""


class Tally:
    """Inputs judged, their rate in this run, and the time left."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._start = clock()
        self.asked = self.before = self.now = self.differing = 0

    def add(self, chunk: Chunk) -> None:
        self.now += chunk.inputs
        self.differing += chunk.differing

    @property
    def done(self) -> int:
        """Inputs, those of earlier runs among them."""
        return self.before + self.now

    @property
    def rate(self) -> float:
        """Inputs a second in this run."""
        return self.now / max(self._clock() - self._start, 1e-9)

    @property
    def left(self) -> float:
        """Seconds that the rest takes at this rate."""
        return (self.asked - self.done) / max(self.rate, 1e-9)


class Lines:
    """For a log: a line each tenth of the inputs or each ten seconds, whichever comes first."""

    def __init__(self, file: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._tally = Tally(clock)
        self._next_done = self._next_time = 0.0

    def started(self, asked: int, judged: int) -> None:
        self._tally = Tally(self._clock)
        self._tally.asked, self._tally.before = asked, judged
        self._wait()

    def judged(self, chunk: Chunk) -> None:
        self._tally.add(chunk)
        if self._tally.done >= self._next_done or self._clock() >= self._next_time:
            self._wait()
            self.say(self._line())

    def finished(self) -> None:
        pass

    def say(self, text: str) -> None:
        print(text, file=self._file, flush=True)

    def _wait(self) -> None:
        self._next_done = self._tally.done + self._tally.asked * LINE_SHARE
        self._next_time = self._clock() + LINE_SECONDS

    def _line(self) -> str:
        tally = self._tally
        share = 100 * tally.done / max(tally.asked, 1)
        return (
            f"{tally.done:,} of {tally.asked:,} inputs ({share:.1f} %), {differing(tally.differing)}, "
            f"{tally.rate:,.0f} inputs/s, {tally.left:,.0f} s left"
        )


class Bar:
    """For a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tally = Tally(time.monotonic)
        self._progress = Progress(
            BarColumn(bar_width=None),
            TaskProgressColumn(),
            TextColumn("{task.fields[differing]:,} differ"),
            TextColumn("{task.fields[rate]:.1f} M inputs/s"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("inputs", total=None, differing=0, rate=0.0)

    def started(self, asked: int, judged: int) -> None:
        self._tally = Tally(time.monotonic)
        self._tally.asked, self._tally.before = asked, judged
        self._progress.update(self._task, total=asked, completed=judged)
        self._progress.start()

    def judged(self, chunk: Chunk) -> None:
        tally = self._tally
        tally.add(chunk)
        self._progress.update(self._task, completed=tally.done, differing=tally.differing, rate=tally.rate / 1e6)

    def finished(self) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def screen(file: TextIO) -> Screen:
    """A bar where `file` is a terminal that can show one; NO_COLOR and TERM=dumb are honoured."""
    console = Console(file=file)
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else Lines(file)
