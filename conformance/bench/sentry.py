"""The sentry: what an implementation must leave alone in the process that measures it, and what must not run beside.

A snapshot is taken before it is imported. What is found is named as a trick; whoever writes into the memory of this
process is not found here, but by the judge, in another process and by another clock.
"""

from __future__ import annotations

import builtins
import gc
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.conformance.bench.message import Alarm
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.process.descendants import descendants
from mlx_assay.impl.executors import crew

_core: Any = mx
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
_ALARMS = (signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF)
_OWN = ("mlx_assay.conformance.bench", "mlx_assay.conformance.process", "mlx_assay.impl.executors")
STREAM_MAKERS = ("new_stream", "new_thread_local_stream", "new_thread_unsafe_stream")
THREAD_LOCAL = ("new_thread_local_stream",)
"""Whose streams are numbered apart, and take another number when they are first used."""
SHOWN = 3
IDLE = (
    "which may be idle but could work beside what is timed, and from outside that looks the same: "
    "end what a call starts before it returns (a pool by shutdown, a process by join)"
)
_NUMBER = re.compile(r"\d+")

_frames = sys._current_frames
_getitimer, _getsignal, _gettrace, _getprofile = signal.getitimer, signal.getsignal, sys.gettrace, sys.getprofile
_crew, _descendants, _getpid, _callbacks, _id = crew.idents, descendants, os.getpid, gc.callbacks, id


class Sentry:
    """Remembers how the process was, and says what is otherwise."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self._watched = list(_watched())
        self._threads = set(_frames())
        self._hooks = _hooks()

    def alarms(self) -> list[Alarm]:
        """What is otherwise now."""
        return [*self._patched(), *self.beside(), *self._hooked(), *self._streams.hidden()]

    def beside(self) -> list[Alarm]:
        """Threads of Python's that the implementation started and that live."""
        added = set(_frames()) - self._threads - _crew()
        if not added:
            return []
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        told = ", ".join(sorted(names.get(ident, "unnamed") for ident in added))
        return [Alarm("threads", f"it keeps {counted(len(added), 'thread')} of its own, {told}, {IDLE}")]

    def _patched(self) -> Iterator[Alarm]:
        changed = [name for name, held, now in self._watched if now() is not held]
        if changed:
            more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
            yield Alarm("patched", f"it replaced {', '.join(changed[:SHOWN])}{more}")

    def _hooked(self) -> Iterator[Alarm]:
        changed = [name for name, value in _hooks().items() if value != self._hooks[name]]
        if changed:
            yield Alarm("hooks", f"it has code run at other times than its calls: {', '.join(changed)}")
        if left := _descendants(_getpid()):
            yield Alarm("processes", f"it keeps {counted(len(left), 'process', 'processes')} of its own, {IDLE}")


class Streams:
    """Every stream that is made from now on, so that all can be waited for."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self._numbered = self._local = self._hidden = 0
        for device in (_core.cpu, _core.default_device()):
            # Each thread makes those of its own when it first needs them.
            _core.default_stream(device)
        self._makers = {name: getattr(_core, name) for name in STREAM_MAKERS if hasattr(_core, name)}
        for name, maker in self._makers.items():
            setattr(_core, name, self._recording(maker, name))
        self._first = self._index()

    def _recording(self, maker: Callable[..., Any], name: str) -> Callable[..., Any]:
        def make(*arguments: Any, **named: Any) -> Any:
            stream = maker(*arguments, **named)
            self.made.append(stream)
            if name in THREAD_LOCAL:
                self._local += 1
            else:
                self._numbered += 1
            return stream

        return make

    def _index(self) -> int:
        """The number of a new stream; a stream tells it in its representation alone."""
        return int(_NUMBER.findall(repr(self._makers["new_stream"](_core.default_device())))[-1])

    def count(self) -> int:
        """How many were made behind the wrapped functions since the last time, known by a gap in the numbers."""
        now = self._index()
        count, self._first, self._numbered = now - self._first - 1 - self._numbered, now, 0
        return count

    def settle(self) -> None:
        """What was made until now is the implementation's, what is made until `forget` is not."""
        self._hidden += self.count()

    def forget(self) -> None:
        """Takes what was made since `settle` for somebody else's."""
        self.count()

    def hidden(self) -> Iterator[Alarm]:
        """Streams of the implementation's that nobody can wait for."""
        self.settle()
        count = self._hidden - self._local
        if count > 0:
            yield Alarm("side-stream", f"it has {count} streams that nobody can wait for")


def _hooks() -> dict[str, object]:
    hooks: dict[str, object] = {
        "gc.callbacks": [_id(callback) for callback in _callbacks],
        "sys.settrace": _id(_gettrace()),
        "sys.setprofile": _id(_getprofile()),
    }
    for number in _ALARMS:
        hooks[f"signal {number.name}"] = _id(_getsignal(number))
    for timer in _TIMERS:
        hooks[f"interval timer {timer}"] = _getitimer(timer)[1]
    return hooks


def _watched() -> Iterator[tuple[str, object, Callable[[], object]]]:
    """Names, what stands there, and how to look again: functions, classes, and the code of the suite's own."""
    named: list[tuple[str, dict[str, Any]]] = [
        (module.__name__, vars(module)) for module in (builtins, time, os, gc, threading, np, mx, mx.fast, mx.random)
    ]
    named.append(("mlx.core.array", vars(mx.array)))  # type: ignore[arg-type]
    own = [name for name in sys.modules if name.startswith(_OWN)]
    modules = [(name, vars(module)) for name in own if isinstance(module := sys.modules[name], ModuleType)]
    for owner, space in [*named, *modules, *_parts(modules)]:
        for name, held in list(space.items()):
            if (name.startswith("__") and name != "__call__") or not (callable(held) or isinstance(held, property)):
                continue
            yield f"{owner}.{name}", held, _look(space, name)
            if type(held) is FunctionType and owner.startswith(_OWN):
                yield f"the code of {owner}.{name}", held.__code__, _code(held)


def _parts(modules: list[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, Any]]:
    """Classes that the suite's own modules make, and objects of such that stand in them."""
    for owner, space in modules:
        for name, held in space.items():
            made = type(held).__module__.startswith(_OWN) and hasattr(held, "__dict__")
            if made or (isinstance(held, type) and held.__module__ == owner):
                yield f"{owner}.{name}", vars(held)


def _look(space: Any, name: str) -> Callable[[], object]:
    return lambda: space.get(name)


def _code(function: FunctionType) -> Callable[[], object]:
    return lambda: function.__code__
