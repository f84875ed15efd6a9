"""The measurement of one benchmark: rotations, rounds of queues in a drawn order, and what is said of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from mlx_assay.conformance.bench import message
from mlx_assay.conformance.bench.benchmark import Asked, Contender, contenders
from mlx_assay.conformance.bench.contender import IMPLEMENTATION
from mlx_assay.conformance.bench.content import NEAR, Content, Windows
from mlx_assay.conformance.bench.figure import Figure, figure
from mlx_assay.conformance.bench.message import Alarm
from mlx_assay.conformance.bench.process import Failure, Measuring, Queued, bytes_at
from mlx_assay.conformance.bench.report import Entry, Rotation, Rotations
from mlx_assay.conformance.bench.verification import Verification
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.arena import aligned
from mlx_assay.impl.executors.counting.counts import Counts

WHOLE = 1 << 16
"""Bytes up to which outputs are handed over whole."""
PASSES = 3
"""How many times the cache the inputs of a queue are that goes beyond it, where so many calls can be had."""
WARMING = 8
QUEUE = 5_000_000
"""Nanoseconds that a queue should take: a hundred times what a queue of no calls does."""
LEAST_CALLS = 16
UNKNOWN_CACHE = 1 << 27
"""Bytes that are taken for the cache where the device does not tell."""
MEMORY_SHARE = 16
"""Of the device's memory, one part in so many may hold the outputs of a queue, and as much its inputs."""
FEWEST_CALLS = 4
IDLE_QUEUES = 9
CLOCKS_APART, LEAST_APART = 0.02, 100_000
"""The share of a span, and the nanoseconds, by which the two clocks of one process may differ."""
CONFIRMING = 20
"""Queues that all must show what the clocks make suspicious: on a busy machine the judge may sleep through some."""
CLOCK_SHARE = 0.67
"""Of what the judge's clock tells, beyond the way there and back, the process's own clock must tell so much."""
LEAST_WATCHED = 2_000_000
"""Nanoseconds of a queue below which the judge's clock says too little."""


@dataclass(frozen=True)
class Plan:
    """How much is measured: queues a contender, calls a queue at most, outputs of a rotation that the oracle checks."""

    rounds: int
    calls: int
    checks: int


class Clocks(NamedTuple):
    """Nanoseconds of one queue by the process's two clocks and by the judge's."""

    own: int
    raw: int
    watched: int


@dataclass
class Spans:
    """What was told of one contender's queues."""

    figures: list[int] = field(default_factory=list)
    wholes: list[int] = field(default_factory=list)
    lazy: bool = True
    clocks: list[Clocks] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def add(self, queued: Queued) -> None:
        """Takes the spans of a queue in."""
        timed = queued.timed
        whole = timed.called + timed.evaluated
        self.wholes.append(whole)
        self.figures.append(timed.evaluated)
        self.lazy = self.lazy and timed.lazy
        self.clocks.append(Clocks(timed.total, timed.raw, queued.watched))
        if queued.outcome is not None:
            self.late.append(queued.outcome.taken[0] - queued.outcome.taken[1])


class Measurement:
    """Measures one benchmark in a process that is there already."""

    def __init__(
        self,
        asked: Asked,
        measuring: Measuring,
        environment: dict[str, Any],
        plan: Plan,
        without: Sequence[str] = (),
        bytes_a_second: float = 0.0,
        beside: Sequence[str] = (),
    ) -> None:
        self._asked = asked
        self._measuring = measuring
        self._environment = environment
        self._plan = plan
        self._without = without
        self._speed = bytes_a_second
        self._beside = beside
        self._executor = measuring.device["executor"]
        self._random = random.SystemRandom()
        self._memory = int(measuring.device.get("memory_bytes") or 1 << 33)
        self._cache = int(measuring.device.get("cache_bytes") or UNKNOWN_CACHE)
        self._contract = contracts()[asked.operation]
        self.alarms: list[Alarm] = []

    def rotations(self) -> list[Rotation]:
        """Every rotation of this executor. Failure, Disagreement; `alarms` holds what was noticed."""
        rivals = contenders(self._asked, self._executor, self._beside)
        seats = [message.Seat(one.name, one.place, one.library, list(one.needs)) for one in rivals]
        asked = self._asked
        missing = self._measuring.prepare(message.Prepare(asked.operation, asked.dtype, dict(asked.shape), seats))
        self.alarms += self._measuring.alarms()
        made: list[Rotation] = []
        if self.alarms:
            return made
        for name in self._names():
            made.append(self._rotation(name, rivals, missing))
            if self.alarms:
                break
        self.alarms += self._measuring.alarms()
        return made

    def counted(self) -> list[Counts]:
        """What the launches of one call do, on content that is the same each time. Failure."""
        content = Content(self._asked, self._contract.parameters, 1)
        self._measuring.load(content.written(self._measuring.child.arena)[0])
        return self._measuring.counted(content.next())

    def _names(self) -> list[Rotations]:
        if self._executor == "host":
            return ["on the host"]
        fits = self._asked.moved.read < self._cache // 2
        return ["beyond the cache", "in the cache"] if fits else ["beyond the cache"]

    def _rotation(self, name: Rotations, rivals: Sequence[Contender], missing: dict[str, str]) -> Rotation:
        there = [IMPLEMENTATION, *(one.name for one in rivals if one.name not in missing)]
        near = name == "in the cache"
        each = min(NEAR, self._most) if near else self._most
        queues = len(there) * (self._plan.rounds + 2) + 2 * CONFIRMING
        content = Content(self._asked, self._contract.parameters, each * queues, self._random.getrandbits(31))
        load, self._place = content.written(self._measuring.child.arena)
        self._measuring.load(load)
        verification = Verification(self._asked, self._contract, content, self._environment, self._without)
        run = partial(self._queue, content=content, verification=verification, near=near)
        for who in there:
            run(who, WARMING, warming=True)
        calls = self._calls(run(IMPLEMENTATION, WARMING, warming=True))
        spans = {who: Spans() for who in there}
        idle = [self._measuring.idle() for _ in range(IDLE_QUEUES)]
        for round_ in range(self._plan.rounds):
            last = round_ == self._plan.rounds - 1
            for who in self._random.sample(there, len(there)):
                if not self.alarms:
                    spans[who].add(run(who, calls, checks=self._checks(round_), last=last))
        self._watch(spans[IMPLEMENTATION], idle, partial(run, IMPLEMENTATION, calls))
        entries = self._entries(rivals, missing, spans, calls)
        return Rotation(
            name=name,
            bytes_read=self._asked.moved.read * (1 if near else calls),
            entries=entries,
            idle=figure([one.timed.called + one.timed.evaluated for one in idle], 1),
            limit=self._asked.moved.total / self._speed * 1e9 if self._speed else None,
            timed=len(spans[IMPLEMENTATION].wholes) * calls,
            checked=verification.checked,
            compared=verification.compared,
        )

    @property
    def _most(self) -> int:
        """Calls of a queue at most: as many as were asked for, and as the device's memory has room for."""
        moved = self._asked.moved
        room = self._memory // MEMORY_SHARE // max(moved.read, moved.written, 1)
        return max(FEWEST_CALLS, min(self._plan.calls, room))

    def _calls(self, warm: Queued) -> int:
        """Calls of a queue: enough for its length to dwarf the way to the device and back, and for the cache."""
        if self._executor == "host":
            return self._most
        each = (warm.timed.called + warm.timed.evaluated) // WARMING
        wanted = max(LEAST_CALLS, QUEUE // max(each, 1), PASSES * self._cache // max(self._asked.moved.read, 1))
        return min(self._most, wanted)

    def _checks(self, round_: int) -> int:
        """How many outputs of a round's queue the oracle checks: as many in each, the rest in the first ones."""
        each, rest = divmod(self._plan.checks, self._plan.rounds)
        return each + (round_ < rest)

    def _queue(
        self,
        who: str,
        calls: int,
        *,
        content: Content,
        verification: Verification,
        near: bool,
        checks: int = 0,
        warming: bool = False,
        last: bool = False,
    ) -> Queued:
        own = [content.next() for _ in range(min(NEAR, calls) if near else calls)]
        windows = [own[call % len(own)] for call in range(calls)]
        ours = who == IMPLEMENTATION
        reference = self._asked.benchmark.reference if ours and not warming else ""
        whole = WHOLE if ours and self._asked.moved.written <= WHOLE else 0
        order = message.Queue(who, windows, near, reference, whole, self._place, probed=ours and warming)
        queued = self._measuring.queue(order)
        if ours and queued.outcome is not None:
            self.alarms += queued.outcome.alarms
            if warming:
                verification.remember(windows)
            elif not self.alarms:
                self._verify(windows, queued.outcome, verification, checks, whole)
            if last and not self.alarms:
                self._fetch(windows, queued.outcome, verification)
        return queued

    def _verify(
        self, windows: Sequence[Windows], outcome: message.Outcome, verification: Verification, checks: int, whole: int
    ) -> None:
        child = self._measuring.child
        contents = [
            bytes_at(child, self._place + call * whole, min(output.nbytes, whole))
            for call, output in enumerate(outcome.outputs)
        ]
        self.alarms += verification.queue(windows, outcome, contents, checks)

    def _fetch(self, windows: Sequence[Windows], outcome: message.Outcome, verification: Verification) -> None:
        """One whole output of the last queue, a part of which every oracle judges."""
        call = verification.draw(len(windows))
        output = outcome.outputs[call]
        count = self._measuring.fetch(call, self._place)
        data = bytes_at(self._measuring.child, self._place, min(count, aligned(self._asked.moved.written) + WHOLE))
        self.alarms += verification.part(windows[call], data, output.dtype, output.shape)

    def _watch(self, spans: Spans, idle: Sequence[Queued], again: Callable[[], Queued]) -> None:
        """What the clocks told of the implementation's queues; a suspicion must hold in each of more queues."""
        way = median(one.watched - one.timed.total for one in idle)
        for suspected in (self._clock, self._late):
            if self.alarms or not spans.clocks or not suspected(spans, way):
                continue
            more = Spans()
            for _ in range(CONFIRMING):
                more.add(again())
                if not suspected(more, way):
                    break
            else:
                self.alarms += suspected(more, way)

    def _clock(self, spans: Spans, way: float) -> list[Alarm]:
        least = min(spans.clocks, key=lambda clocks: (clocks.watched - way) / max(clocks.own, 1))
        if least.watched - way > LEAST_WATCHED and least.own < CLOCK_SHARE * (least.watched - way):
            told = f"a queue took {_ms(least.watched)} by the judge's clock and {_ms(least.own)} by its own"
            return [Alarm("clock", f"{told}, and no other less of it")]
        apart = min(abs(clocks.own - clocks.raw) - CLOCKS_APART * clocks.raw for clocks in spans.clocks)
        return [Alarm("clock", "the two clocks of its process go differently")] if apart > LEAST_APART else []

    def _late(self, spans: Spans, way: float) -> list[Alarm]:
        pairs = list(zip(spans.late, spans.wholes, strict=True))
        if not all(late > LEAST_WATCHED and late > whole for late, whole in pairs):
            return []
        late = min(late for late, _ in pairs)
        return [Alarm("deferred", f"reading its outputs waited {_ms(late)} for work after the span, in every queue")]

    def _entries(
        self, rivals: Sequence[Contender], missing: dict[str, str], spans: dict[str, Spans], calls: int
    ) -> list[Entry]:
        entries = [self._entry(Contender(IMPLEMENTATION, ""), spans[IMPLEMENTATION], calls)]
        for one in rivals:
            if one.name in missing:
                entries.append(Entry(name=one.name, same=one.same, note=one.note, missing=missing[one.name]))
            else:
                entries.append(self._entry(one, spans[one.name], calls))
        return entries

    def _entry(self, one: Contender, spans: Spans, calls: int) -> Entry:
        if not spans.wholes or (one.name == IMPLEMENTATION and self.alarms):
            return Entry(name=one.name, same=one.same, note=one.note)
        whole: Figure = figure(spans.wholes, calls)
        own = figure(spans.figures, calls) if spans.lazy else whole
        return Entry(name=one.name, figure=own, whole=whole, lazy=spans.lazy, same=one.same, note=one.note)


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:,.2f} ms"


__all__ = ["Failure", "Measurement", "Plan"]
