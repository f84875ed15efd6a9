"""The watch over kernels in the process that runs them: launches under the checker, findings located and told."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import msgspec

from mlx_assay.conformance.checking import places
from mlx_assay.conformance.checking.diagnostics import accumulations, located, refusals, transcendentals
from mlx_assay.conformance.checking.protocol import (
    MOST_FINDINGS,
    MOST_KERNELS,
    TEXT_LIMIT,
    Defined,
    Dropped,
    Launched,
    Message,
    Met,
    Returned,
    Sensed,
    Settings,
    Stumbled,
)
from mlx_assay.conformance.checking.report import Diagnostic, Location, Problem
from mlx_assay.conformance.checking.sensitivity import Senses
from mlx_assay.impl.executors import checker
from mlx_assay.impl.executors.checker.finding import Finding
from mlx_assay.impl.executors.observation import Launch
from mlx_assay.impl.executors.signature import Definition

Tell = Callable[[Message], None]


class _Watched:
    """A kernel under watch."""

    def __init__(self, number: int, definition: Definition, checked: bool, first: dict[str, list[int]]) -> None:
        self.number = number
        self.name = definition.name[:TEXT_LIMIT]
        self.digest = hashlib.sha256(repr(definition).encode()).hexdigest()
        self.checked = checked
        self.texts = places.Texts(definition, first)
        self.senses = Senses(definition.output_names)


class Watch:
    """An observer of launches (see impl.executors.observation); may be called from many threads."""

    def __init__(self, settings: Settings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._kernels: dict[Definition, _Watched] = {}
        self._origins: dict[Definition, dict[str, list[int]]] = {}
        self._numbers: dict[object, int] = {}
        self._found: list[Diagnostic] = []
        self._told: list[int] = []
        self._dropped = 0
        self._told_of_fork = False

    def __call__(self, definition: Definition, launch: Launch) -> list[Any]:
        """Runs the launch under the checker; the first schedule's outputs are the script's."""
        if os.getpid() != self._process:
            return launch.run()
        site = places.site()
        kernel = self._kernel(definition)
        thread = threading.get_ident()
        self._tell(Launched(kernel.number, thread, site))
        try:
            if not kernel.checked:
                return launch.run()
            if kernel.digest in self._settings.skipped:
                return launch.skip()
            outputs = self._checked(kernel, launch, site)
            if self._settings.sensitivity:
                kernel.senses.feel(launch, self._settings.schedules)
            return outputs
        finally:
            self._tell(Returned(thread))

    def defined(self, definition: Definition) -> None:
        """A kernel is made: its text most likely stands near."""
        with self._lock:
            if definition not in self._kernels and len(self._origins) < MOST_KERNELS:
                self._origins.setdefault(definition, places.stack())

    def called(self, definition: Definition) -> None:
        """A kernel is called. Whoever is forked has its own copy of what is known here, and cannot add to it.

        RuntimeError: in a process forked after a launch, where MLX would wait for ever for threads that are not there.
        """
        if os.getpid() == self._process:
            return
        told = f"kernel {definition.name[:TEXT_LIMIT]!r} was launched in a forked process, where it is not checked"
        if not self._told_of_fork:
            self._told_of_fork = True
            self._tell(Stumbled(Problem(what="fork", message=told, location=places.site())))
        if self._kernels:
            raise RuntimeError(
                f"kernel {definition.name!r} was called in a process forked after a launch, where MLX waits for "
                "threads that are not there: fork before the first launch, or start processes by spawn"
            )

    def _checked(self, kernel: _Watched, launch: Launch, site: Location | None) -> list[Any]:
        before: dict[object, int] = {}

        def met(finding: Finding) -> None:
            self._add(kernel, finding, site, before)

        try:
            with checker.checked(
                schedules=self._settings.schedules or None, on_finding=met, seconds=self._settings.launch_limit
            ) as findings:
                outputs = launch.run()
        except Exception as error:
            return self._unchecked(kernel, launch, site, error)
        for finding in findings:
            self._add(kernel, finding, site, before)
        return outputs

    def _unchecked(self, kernel: _Watched, launch: Launch, site: Location | None, error: Exception) -> list[Any]:
        """A launch that raised under the checker: what it raises without is the script's, else the checker failed."""
        try:
            outputs = launch.run()
        except Exception as own:
            for refused in refusals(kernel.number, kernel.texts, own, site):
                self._count((refused.kind, kernel.number, refused.message, refused.location), partial(_same, refused))
            raise
        told = f"the checker failed on kernel {kernel.name!r}, which ran without it: {type(error).__name__}: {error}"
        self._tell(Stumbled(Problem(what="checker", message=told[:TEXT_LIMIT], location=site)))
        return outputs

    def finish(self) -> None:
        """Tells what has not been told: counts that have grown, and sensitivities."""
        with self._lock:
            for number, finding in enumerate(self._found):
                if self._told[number] != finding.count:
                    self._tell(Met(number, finding))
            if self._dropped:
                self._tell(Dropped(self._dropped))
            for kernel in self._kernels.values():
                if kernel.senses.launches:
                    self._tell(Sensed(kernel.number, kernel.senses.told()))

    def _kernel(self, definition: Definition) -> _Watched:
        with self._lock:
            if (found := self._kernels.get(definition)) is not None:
                return found
            if len(self._kernels) >= MOST_KERNELS:
                raise RuntimeError(f"expected at most {MOST_KERNELS} kernels in one check but the script makes more")
            wanted = self._settings.kernels
            checked = not wanted or any(fnmatchcase(definition.name, glob) for glob in wanted)
            first = self._origins.pop(definition, None) or places.stack()
            made = _Watched(len(self._kernels), definition, checked, first)
            self._kernels[definition] = made
            calls = transcendentals(definition), accumulations(definition)
            self._tell(Defined(made.digest, made.name, made.texts.begin(), checked, *calls))
            return made

    def _add(self, kernel: _Watched, finding: Finding, site: Location | None, before: dict[object, int]) -> None:
        lines = tuple((access.place.file, access.place.line) for access in finding.accesses)
        met = (finding.kind, lines, finding.array, finding.barrier)
        # Which of two accesses came first is the schedule's choice.
        key = (finding.kind, kernel.number, frozenset(lines), finding.array)
        with self._lock:
            more = finding.count - before.get(met, 0)
            before[met] = finding.count
            self._count(key, lambda: located(kernel.number, kernel.texts, finding, site), more)

    def _count(self, key: object, made: Callable[[], Diagnostic], more: int = 1) -> None:
        """Keeps a finding that was met so often since it was counted last; tells of new ones, and of counts doubled."""
        with self._lock:
            number = self._numbers.get(key)
            if number is None:
                if len(self._found) >= MOST_FINDINGS:
                    self._dropped += more
                    return
                number = self._numbers[key] = len(self._found)
                self._found.append(msgspec.structs.replace(made(), count=0))
                self._told.append(0)
            grown = msgspec.structs.replace(self._found[number], count=self._found[number].count + more)
            self._found[number] = grown
            if grown.count >= 2 * self._told[number]:
                self._told[number] = grown.count
                self._tell(Met(number, grown))


def _same(finding: Diagnostic) -> Diagnostic:
    return finding
