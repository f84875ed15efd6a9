"""Where the time of a process goes: seconds by stage, each counted once, where it is spent.

Off, a stage costs a fifth of a microsecond; on, two, half of them for looks at the clocks.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from threading import get_ident
from types import TracebackType

with contextlib.suppress(ImportError):  # on Windows, where nothing is counted, and the plugin is imported nonetheless
    import resource

_cpu_clock, _wall_clock = time.process_time, time.perf_counter

Spent = dict[str, tuple[int, float, float]]
"""By stage: how often it was entered, CPU seconds of all threads, and wall seconds."""


class Stopwatch:
    """The time of one thread's stages, one of which runs at any moment: an inner one interrupts the one around it.

    CPU seconds are those of the whole process, threads that serve a stage included. What the process spent before the
    watch was made is the first stage's.
    """

    def __init__(self, first: str) -> None:
        self.thread = get_ident()
        self.claimed = 0.0
        self._stage = first
        self.spent: dict[str, list[float]] = {}
        self._cpu, self._wall = 0.0, time.perf_counter() - age()
        self.count(first)

    def turn(self, stage: str) -> str:
        """From now on time is that stage's; gives the one before."""
        cpu, wall = _cpu_clock(), _wall_clock()
        before = self._stage
        spent = self.spent.get(before)
        if spent is None:
            spent = self.spent[before] = [0, 0.0, 0.0]
        spent[1] += cpu - self._cpu
        spent[2] += wall - self._wall
        self._cpu, self._wall, self._stage = cpu, wall, stage
        return before

    def count(self, stage: str) -> None:
        """The stage was entered once more."""
        self._of(stage)[0] += 1

    def add(self, stage: str, count: int, cpu: float, wall: float) -> None:
        """What was spent elsewhere."""
        spent = self._of(stage)
        spent[0] += count
        spent[1] += cpu
        spent[2] += wall

    def take(self) -> Spent:
        """What was spent since the last time, the running stage's time up to now included."""
        self.turn(self._stage)
        taken = {stage: (int(count), cpu, wall) for stage, (count, cpu, wall) in self.spent.items()}
        self.spent = {}
        return taken

    def _of(self, stage: str) -> list[float]:
        found = self.spent.get(stage)
        return self.spent.setdefault(stage, [0, 0.0, 0.0]) if found is None else found


class _Stage:
    """One stage of one watch, as a context."""

    __slots__ = ("_before", "_ended", "_name", "_spawned", "_watch")

    def __init__(self, watch: Stopwatch, name: str, spawned: str) -> None:
        self._watch, self._name, self._spawned = watch, name, spawned

    def __enter__(self) -> None:
        watch, name = self._watch, self._name
        if self._spawned:
            self._ended = ended() - watch.claimed
        before = self._before = watch.turn(name)
        if before != name:
            spent = watch.spent.get(name)
            if spent is None:
                spent = watch.spent[name] = [0, 0.0, 0.0]
            spent[0] += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watch.turn(self._before)
        if self._spawned and (more := ended() - self._watch.claimed - self._ended) > 0:
            self._watch.claimed += more
            self._watch.add(self._spawned, int(self._spawned != self._name), more, 0.0)


_OFF = contextlib.nullcontext()
_watch: Stopwatch | None = None


def start(first: str) -> Stopwatch:
    """Counts from here on in this process, what its calling thread does; a watch that was there ends."""
    global _watch
    _watch = Stopwatch(first)
    return _watch


def stop() -> None:
    """Counts no more."""
    global _watch
    _watch = None


def ensure(asked: bool) -> None:
    """Counts from here on, if that is asked for and nobody does already."""
    if asked and current() is None:
        start("start")


@contextlib.contextmanager
def counting(asked: bool) -> Iterator[None]:
    """Counts while it lasts, if that is asked for."""
    if asked:
        start("start")
    try:
        yield
    finally:
        if asked:
            stop()


def current() -> Stopwatch | None:
    """The watch of this thread; None where nobody counts."""
    watch = _watch
    return watch if watch is not None and watch.thread == get_ident() else None


def stage(name: str, spawned: str = "") -> contextlib.AbstractContextManager[None]:
    """What runs inside is that stage's, but for what runs inside of another one in it.

    `spawned` is the stage to which the CPU seconds belong of processes that are started, and ended, inside.
    """
    watch = _watch
    return _OFF if watch is None or watch.thread != get_ident() else _Stage(watch, name, spawned)


def taken(then: str) -> Spent:
    """What was spent since the last time, nothing where nobody counts; what follows is that stage's."""
    if (watch := current()) is None:
        return {}
    spent = watch.take()
    watch.turn(then)
    return spent


def ended() -> float:
    """CPU seconds of processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def whole() -> float:
    """CPU seconds of this process and of all that it started and waited for."""
    return time.process_time() + ended()


def age() -> float:
    """Wall seconds since this process began; 0 where the system does not tell."""
    if sys.platform != "linux":
        return 0.0
    with contextlib.suppress(OSError, ValueError), open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
        return max(0.0, float(uptime.read().split()[0]) - ticks / _TICKS)
    return 0.0


LOADED = time.monotonic() - time.process_time()
"""Of time.monotonic, when this process began: it has spent no less than its CPU seconds until here."""
_command: float | None = None


@contextlib.contextmanager
def command(moment: float) -> Iterator[None]:
    """What runs inside is one command's, which began at that moment of time.monotonic."""
    global _command
    before, _command = _command, moment
    try:
        yield
    finally:
        _command = before


def began() -> float:
    """The moment at which the command began that runs now; now, where there is none."""
    return time.monotonic() if _command is None else _command


_TICKS = 100
"""Of a second, in which Linux tells when a process began (USER_HZ, proc(5))."""
