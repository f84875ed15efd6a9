"""Progress of a run: a bar on a terminal, plain lines elsewhere, and each failing case's text as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.quotation import passage
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import Report

TEXTS = 100
"""Failing cases whose text is shown; all of them stand in the report."""
LINE_SECONDS = 10.0
LINE_SHARE = 0.1
TOLD_SHARE = 0.02
"""Of the cases, from which on the time left is told."""


class Tally:
    """Counts, rate and time left, of cases behind the first: what came before it is the start of processes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first = clock()
        self.declared = self.done = self.failing = 0

    def add(self, record: Record) -> None:
        self.done += 1
        self.failing += not record.conforms
        if self.done == 1:
            self._first = self._clock()

    @property
    def rate(self) -> float:
        """Cases a second since the first."""
        return (self.done - 1) / max(self._clock() - self._first, 1e-9)

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes at this rate; None: too few were judged to tell."""
        told = self.done >= max(2, self.declared * TOLD_SHARE)
        return (self.declared - self.done) / max(self.rate, 1e-9) if told else None


class Lines:
    """Progress for a log: one line each tenth of the cases or each ten seconds, whichever comes first."""

    def __init__(self, file: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._file = file
        self._clock = clock
        self._tally = Tally(clock)
        self._next_done = 0.0
        self._next_time = 0.0

    def started(self, declared: int) -> None:
        self._tally.declared = declared
        self._next_done = declared * LINE_SHARE
        self._next_time = self._clock() + LINE_SECONDS

    def judged(self, record: Record) -> None:
        self._tally.add(record)
        if text := failing_text(record, self._tally):
            self.say(text)
        if self._tally.done >= self._next_done or self._clock() >= self._next_time:
            self._next_done = self._tally.done + self._tally.declared * LINE_SHARE
            self._next_time = self._clock() + LINE_SECONDS
            self.say(self._line())

    def finished(self, report: Report) -> None:
        pass

    def say(self, text: str) -> None:
        print(text, file=self._file, flush=True)

    def _line(self) -> str:
        tally = self._tally
        told = f"{tally.done}/{counted(tally.declared, 'case')}, {tally.failing} failing"
        if (left := tally.left) is None:
            return told
        return f"{told}, {tally.rate:.{0 if tally.rate >= 10 else 1}f} cases/s, {left:.0f} s left"


class Bar:
    """Progress for a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tally = Tally()
        self._progress = Progress(
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failing]} failing"),
            TextColumn("{task.fields[rate]:.0f} cases/s"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("cases", total=None, failing=0, rate=0.0)

    def started(self, declared: int) -> None:
        self._tally.declared = declared
        self._progress.update(self._task, total=declared)
        self._progress.start()

    def judged(self, record: Record) -> None:
        self._tally.add(record)
        if text := failing_text(record, self._tally):
            self.say(text)
        self._progress.update(
            self._task, completed=self._tally.done, failing=self._tally.failing, rate=self._tally.rate
        )

    def finished(self, report: Report) -> None:
        self._progress.stop()

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def failing_text(record: Record, tally: Tally) -> str:
    """What a person reads of a case that does not conform; empty for one that does, and beyond TEXTS."""
    if record.conforms or tally.failing > TEXTS:
        return ""
    text = passage(record.message or record.id)
    return f"{record.verdict.value}: {text}" + (
        "\nfurther failing cases: see the report" if tally.failing == TEXTS else ""
    )


def screen(file: TextIO) -> Bar | Lines:
    """A bar where `file` is a terminal that can show one; NO_COLOR and TERM=dumb are honoured."""
    console = Console(file=file)
    return Bar(console) if console.is_terminal and not console.is_dumb_terminal else Lines(file)
