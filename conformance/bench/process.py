"""The measuring process as the judge sees it: orders and replies, and the judge's own clock around each queue."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from mlx_assay.conformance.adapters.target import target
from mlx_assay.conformance.bench import message
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.child import Child, Death
from mlx_assay.conformance.process.seal import preload, seal

START = "from mlx_assay.conformance.bench.serve import main; main({orders}, {replies}, {arena}, {lifeline}, {parent})"
MAKING = 600.0
"""Seconds that the contenders may take to be made: nvcc takes a minute and more for one of XGrammar's."""
_now = time.perf_counter_ns
R = TypeVar("R")


class Failure(Exception):
    """What was asked of the measuring process did not come about."""


class Tricked(Failure):
    """A call did what only a trick does."""

    def __init__(self, alarm: message.Alarm) -> None:
        super().__init__(alarm.text)
        self.alarm = alarm


class Queued(NamedTuple):
    """A queue that was run: what the process told, and how long it took by this process's clock, in nanoseconds."""

    timed: message.Timed
    outcome: message.Outcome | None
    watched: int


class Measuring:
    """One process that holds the implementation and everybody beside it. `limit` is in seconds, for each order."""

    def __init__(self, text: str | None, executor: str, limit: float) -> None:
        from mlx_assay.impl.executors.fidelity import current

        self._limit = limit
        seal()
        preload()
        path = [folder for folder in sys.path if folder]
        self._start = message.Start(target(text).module, executor, current().described(), path, sorted(contracts()))
        self.start()

    def start(self) -> None:
        """Starts the process. Failure: the implementation cannot be imported."""
        self.child = Child(start=START, decode=message.decode_reply)
        try:
            ready = self.ask(self._start, message.Ready)
        except BaseException:
            self.child.end()
            raise
        self.operations, self.device = tuple(ready.operations), dict(ready.device)

    @property
    def host(self) -> bool:
        """Whether kernels run on this CPU, where they are counted."""
        return self.device["executor"] == "host"

    def restart(self) -> None:
        """Another process in place of one that has ended, or of which nobody knows where it is."""
        self.child.end()
        self.start()

    def __enter__(self) -> Measuring:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.child.end()

    def prepare(self, order: message.Prepare) -> dict[str, str]:
        """Makes the contenders; why those that are missing are. Some are compiled when they are first asked."""
        return self.ask(order, message.Seated, max(self._limit, MAKING)).missing

    def load(self, order: message.Load) -> None:
        """Hands content over."""
        self.ask(order, message.Done)

    def queue(self, order: message.Queue) -> Queued:
        """Runs a queue. Failure: a call raised; Tricked: it returned something else than an array."""
        return self._spanned(order, True)

    def idle(self) -> Queued:
        """Runs a queue of nothing."""
        return self._spanned(message.Idle(), False)

    def fetch(self, call: int, place: int) -> int:
        """Has one output of the last queue written to the arena; its bytes."""
        return self.ask(message.Fetch(call, place), message.Fetched).nbytes

    def copies(self, size: int) -> dict[str, list[int]]:
        """Times copies on the device."""
        return self.ask(message.Copy(size), message.Copied).spans

    def alarms(self) -> Sequence[message.Alarm]:
        """What the sentry knows."""
        return self.ask(message.Inspect(), message.Findings).alarms

    def ask(self, order: message.Order, kind: type[R], limit: float | None = None) -> R:
        """Sends an order and takes the reply that belongs to it. Failure: it is another, or the process has ended."""
        deadline = time.monotonic() + (self._limit if limit is None else limit)
        try:
            self.child.send(order, deadline)
            return self._reply(kind, deadline)
        except Death as death:
            raise Failure(death.message) from None

    def _spanned(self, order: message.Queue | message.Idle, delivered: bool) -> Queued:
        deadline = time.monotonic() + self._limit
        try:
            self.child.send(order, deadline)
            self._reply(message.Began, deadline)
            began = _now()
            timed = self._reply(message.Timed, deadline)
            watched = _now() - began
            outcome = self._reply(message.Outcome, deadline) if delivered else None
        except Death as death:
            raise Failure(death.message) from None
        return Queued(timed, outcome, watched)

    def _reply(self, kind: type[R], deadline: float) -> R:
        reply: Any = self.child.receive(deadline)
        if isinstance(reply, message.Raised):
            if not reply.type:
                raise Tricked(message.Alarm("deferred", f"{reply.message}: its work may be done when it is read"))
            raise Failure(f"call {reply.call + 1} of a queue raised {reply.type}: {reply.message}")
        if isinstance(reply, message.Refused):
            raise Failure(reply.message)
        if not isinstance(reply, kind):
            raise self.child.foul("a reply out of turn")
        return reply


def bytes_at(child: Child, place: int, count: int) -> bytes:
    """What the process has written to the arena. Failure: it is not there."""
    data = os.pread(child.arena, count, place)
    while len(data) < count and (more := os.pread(child.arena, count - len(data), place + len(data))):
        data += more
    if len(data) < count:
        raise Failure("an output is not in the arena")
    return data
