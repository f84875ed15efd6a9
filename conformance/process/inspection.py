"""Kernels of what is judged under the checker, in its process: what was found during a call, in words, with places."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from mlx_assay.conformance.checking import places
from mlx_assay.conformance.checking.diagnostics import located
from mlx_assay.conformance.checking.rendering import diagnostic
from mlx_assay.conformance.checking.report import Diagnostic, Kernel
from mlx_assay.impl.executors import checker, choice
from mlx_assay.impl.executors.checker.finding import Finding, Kind, Severity
from mlx_assay.impl.executors.checker.session import POISONS, SCHEDULES
from mlx_assay.impl.executors.observation import Launch
from mlx_assay.impl.executors.signature import Definition

SHOWN = 3
"""Findings of one call that are told whole; more are counted."""

MOST_KERNELS = 1000
WIDTH = 120


class Inspection:
    """An observer of launches (see impl.executors.observation); may be called from many threads.

    `seconds` is the longest that one run of a launch may take; each runs once under every schedule.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._origins: dict[Definition, dict[str, list[int]]] = {}
        self._texts: dict[Definition, places.Texts] = {}
        self._met: list[tuple[Definition, Finding]] = []
        self._failures: list[str] = []
        self._launches = 0
        self._hung: dict[Definition, list[Finding]] = {}

    def begin(self) -> None:
        """A case begins: what hung in the one before may run again."""
        with self._lock:
            self._hung.clear()

    def __call__(self, definition: Definition, launch: Launch) -> list[Any]:
        """Runs the launch under the checker; the caller gets the outputs of the schedule and poison of its call.

        A kernel that has hung runs no more in the same case, whose limit many of its calls would take.
        """
        with self._lock:
            if hung := self._hung.get(definition):
                self._met += [(definition, finding) for finding in hung]
                return launch.skip()
        own = choice.current_schedule()
        schedules = (own, *(name for name in SCHEDULES if name != own))
        poison = choice.current_poison()
        poisons = POISONS if poison is None else (poison, POISONS[1])
        try:
            with checker.checked(schedules=schedules, poisons=poisons, seconds=self._seconds) as findings:
                outputs = launch.run()
        except Exception as error:
            # What raises without the checker too is the implementation's own.
            outputs = launch.run()
            with self._lock:
                self._failures.append(f"it failed on kernel {definition.name!r}: {type(error).__name__}: {error}")
            return outputs
        with self._lock:
            self._launches += 1
            self._met += [(definition, finding) for finding in findings if finding.severity is Severity.ERROR]
            if hung := [finding for finding in findings if finding.kind is Kind.HANG]:
                self._hung[definition] = hung
        return outputs

    def defined(self, definition: Definition) -> None:
        """A kernel is made: its text most likely stands near."""
        with self._lock:
            if len(self._origins) < MOST_KERNELS:
                self._origins.setdefault(definition, places.stack())

    def take(self) -> tuple[int, str]:
        """How many launches were checked since the last time, and what was found in them; empty for nothing."""
        with self._lock:
            launches, met, failures = self._launches, self._met, self._failures
            self._launches, self._met, self._failures = 0, [], []
        return launches, "\n".join([*self._told(met), *failures])

    def _told(self, met: Sequence[tuple[Definition, Finding]]) -> list[str]:
        """Each kind of finding of a kernel once a place."""
        first: dict[object, tuple[Definition, Diagnostic]] = {}
        for definition, finding in met:
            made = located(0, self._places(definition), finding, None)
            first.setdefault((made.kind, made.location, definition), (definition, made))
        lines = [
            line.plain
            for definition, made in list(first.values())[:SHOWN]
            for line in diagnostic(made, Kernel(name=definition.name), WIDTH)
        ]
        return [*lines, f"{len(first) - SHOWN} more findings"] if len(first) > SHOWN else lines

    def _places(self, definition: Definition) -> places.Texts:
        if definition not in self._texts:
            if len(self._texts) >= MOST_KERNELS:
                self._texts.clear()
            self._texts[definition] = places.Texts(definition, self._origins.get(definition, {}))
        return self._texts[definition]
