"""Launches under the checker: each once under every schedule, findings gathered, outputs compared."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

import msgspec

from mlx_assay.impl.executors import choice, crew
from mlx_assay.impl.executors.checker.comparison import Runs, certain, compared, differing, pending
from mlx_assay.impl.executors.checker.crew import at_once
from mlx_assay.impl.executors.checker.finding import Finding
from mlx_assay.impl.executors.checker.request import Condition
from mlx_assay.impl.executors.checker.run import Result, Work, run
from mlx_assay.impl.executors.launch import DEFAULT_POISON

T = TypeVar("T")

# Runs do not depend on one another, and their memory is held once for each that runs.
_MOST = 4

SCHEDULES = ("in-order", "reverse", "round-robin", "pct:1")
POISONS = (DEFAULT_POISON, 0x3DCC3DCC)  # a NaN, and about 0.1, in f16, bfloat and f32 alike


class Session:
    """What `checked` was asked for, and what was found so far."""

    def __init__(
        self,
        schedules: Sequence[str],
        poisons: Sequence[int],
        on_finding: Callable[[Finding], None] | None,
        seconds: float,
    ) -> None:
        self.runs, self.others = _runs(schedules, poisons)
        self.seconds = seconds
        self.findings: list[Finding] = []
        self._on_finding = on_finding
        self._known: dict[object, int] = {}
        self._lock = threading.Lock()

    def add(self, finding: Finding) -> None:
        """Takes a finding; one of the same kind, kernel, lines and array adds to the count of the first."""
        key = (finding.kind, finding.kernel, finding.array, finding.barrier, *(a.place for a in finding.accesses))
        with self._lock:
            if (at := self._known.get(key)) is not None:
                old = self.findings[at]
                self.findings[at] = msgspec.structs.replace(old, count=old.count + finding.count)
                return
            self._known[key] = len(self.findings)
            self.findings.append(finding)
        if self._on_finding is not None:
            self._on_finding(finding)

    def _results(self, work: Work, runs: Sequence[tuple[str, int]]) -> Runs:
        """As many runs at once as there are processors, until one does not end."""
        results: Runs = []
        conditions = [Condition(schedule, choice.code(schedule), poison, self.seconds) for schedule, poison in runs]
        number = min(_MOST, crew.threads())
        for first in range(0, len(conditions), number):
            batch = conditions[first : first + number]
            results += zip(batch, self._at_once(work, batch), strict=True)
            if not all(result.ended for _, result in results):
                break
        return results

    def _at_once(self, work: Work, conditions: Sequence[Condition]) -> list[Result]:
        """Runs of which each tells what it has found once those before it have, lest a later one end the process."""
        lock, ended, told = threading.Lock(), dict[int, Result](), 0

        def one(number: int) -> Result:
            nonlocal told
            result = run(work, conditions[number])
            with lock:
                ended[number] = result
                while told in ended:
                    for finding in certain(ended[told]):
                        self.add(finding)
                    told += 1
            return result

        return at_once([partial(one, number) for number in range(len(conditions))])

    def run(self, work: Work) -> list[bytes]:
        """Runs a kernel under every schedule and gives the bytes of the outputs of the first run."""
        results = self._results(work, self.runs)
        # What differs may do so for one of two reasons: what is missing tells which.
        if all(result.ended for _, result in results) and differing(results):
            results += self._results(work, self.others)
        for finding in pending(work, results):
            self.add(finding)
        for finding in compared(work, results):
            self.add(finding)
        return results[0][1].outputs


def _runs(schedules: Sequence[str], poisons: Sequence[int]) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Runs in which every schedule and every poison occurs; and every poison under the first schedule that is left."""
    first = schedules[0]
    count = max(len(schedules), len(poisons))
    runs = [(schedules[i] if i < len(schedules) else first, poisons[i % len(poisons)]) for i in range(count)]
    return runs, [(first, poison) for poison in poisons if (first, poison) not in runs]


_current: ContextVar[Session | None] = ContextVar("mlx_assay_checker", default=None)


def current() -> Session | None:
    """The session of `checked`, where launches run under one."""
    return _current.get()


@contextlib.contextmanager
def checked(
    *,
    schedules: Sequence[str] | None = None,
    poisons: Sequence[int] | None = None,
    on_finding: Callable[[Finding], None] | None = None,
    seconds: float = 60.0,
) -> Iterator[list[Finding]]:
    """Kernels called inside run under the checker, on the host executor; the list grows with what is found.

    Each runs once under each schedule and with each poison; the caller gets the outputs of the first run. `seconds` is
    the longest that one run may take. Kernels do not raise for what is a finding.
    ValueError: no such schedule, or none.
    """
    names = tuple(SCHEDULES if schedules is None else schedules)
    patterns = tuple(POISONS if poisons is None else poisons)
    if not names or not patterns:
        raise ValueError(f"expected a schedule and a poison at least, and got {names} and {patterns}")
    for name in names:
        choice.code(name)
    session = Session(names, patterns, on_finding, seconds)
    token = _current.set(session)
    try:
        yield session.findings
    finally:
        _current.reset(token)


def check(
    call: Callable[[], T],
    *,
    schedules: Sequence[str] | None = None,
    poisons: Sequence[int] | None = None,
    on_finding: Callable[[Finding], None] | None = None,
    seconds: float = 60.0,
) -> tuple[T, list[Finding]]:
    """What `call` returns, and what the checker found in the kernels that it called: see `checked`."""
    with checked(schedules=schedules, poisons=poisons, on_finding=on_finding, seconds=seconds) as findings:
        value = call()
    return value, findings
