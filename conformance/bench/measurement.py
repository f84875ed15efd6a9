"""The measurement of one benchmark: rotations, rounds of queues in a drawn order, and what is said of them."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from mlx_assay.conformance.bench import message
from mlx_assay.conformance.bench.benchmark import Asked, Contender, contenders
from mlx_assay.conformance.bench.contender import IMPLEMENTATION
from mlx_assay.conformance.bench.content import AIM, NEAR, SMALL_AIM, Content, Windows, spare
from mlx_assay.conformance.bench.figure import Figure, figure
from mlx_assay.conformance.bench.message import Alarm
from mlx_assay.conformance.bench.process import Failure, Measuring, Queued, bytes_at
from mlx_assay.conformance.bench.report import Entry, Rotation, Rotations
from mlx_assay.conformance.bench.suspicion import CONFIRMING, Spans, watched
from mlx_assay.conformance.bench.verification import Verification
from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.process.arena import aligned
from mlx_assay.impl.executors.counting.counts import Counts

WHOLE = 1 << 16
"""Bytes up to which outputs are handed over whole."""
PASSES = 3
"""How many times the cache the inputs of a queue are that goes beyond it, where so many calls can be had."""
BEYOND: Rotations = "beyond the cache"
NEARBY: Rotations = "in the cache"
WARMING, WARM_QUEUES = 8, 2
"""Calls of a queue that warms up, and such queues of the implementation after the first, the last of which is timed."""
QUEUE = 5_000_000
"""Nanoseconds that a queue should take: a hundred times what a queue of no calls does."""
LEAST_CALLS = 32
UNKNOWN_CACHE = 1 << 27
"""Bytes that are taken for the cache where the device does not tell."""
MEMORY_SHARE = 16
"""Of the device's memory, one part in so many may hold the outputs of a queue, and as much its inputs."""
FEWEST_CALLS = 4
IDLE_QUEUES = 9


@dataclass(frozen=True)
class Plan:
    """How much is measured: queues a contender, calls a queue at most, outputs of a rotation that the oracle checks."""

    rounds: int
    calls: int
    checks: int


class Measurement:
    """Measures one benchmark in a process that is there already; by one `seed` two count a call on the same content."""

    def __init__(
        self,
        asked: Asked,
        measuring: Measuring,
        environment: dict[str, Any],
        plan: Plan,
        without: Sequence[str] = (),
        bytes_a_second: float = 0.0,
        beside: Sequence[str] = (),
        names: Sequence[Rotations] = (),
        seed: int | None = None,
    ) -> None:
        self._asked = asked
        self._measuring = measuring
        self._environment = environment
        self._plan = plan
        self._without = without
        self._speed = bytes_a_second
        self._beside = beside
        self._chosen = names
        self._executor = measuring.device["executor"]
        self._random = random.SystemRandom()
        self._memory = int(measuring.device.get("memory_bytes") or 1 << 33)
        self._cache = int(measuring.device.get("cache_bytes") or UNKNOWN_CACHE)
        self._contract = contracts()[asked.operation]
        self._seed = self._random.getrandbits(31) if seed is None else seed
        self.alarms: list[Alarm] = []
        self.launches: list[Counts] = []

    def rotations(self) -> list[Rotation]:
        """Every rotation of this executor. Failure, Disagreement; `alarms` holds what was noticed.

        On the host `launches` are those of one timed call, drawn, whose output is checked.
        """
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

    def _names(self) -> Sequence[Rotations]:
        if self._chosen:
            return self._chosen
        if self._executor == "host":
            return ["on the host"]
        fits = self._asked.moved.read < self._cache // 2
        return [BEYOND, NEARBY] if fits else [BEYOND]

    def _rotation(self, name: Rotations, rivals: Sequence[Contender], missing: dict[str, str]) -> Rotation:
        began = time.monotonic()
        there = [IMPLEMENTATION, *(one.name for one in rivals if one.name not in missing)]
        near = name == NEARBY
        each = NEAR if near else self._most
        queues = len(there) * (self._plan.rounds + 1) + WARM_QUEUES + 2 * CONFIRMING
        windows, seed, room = each * (queues + 1), self._seed + len(name), spare(self._memory)
        aim = SMALL_AIM if self._measuring.host else AIM
        content = Content(self._asked, self._contract.parameters, windows, seed, near, room=room, aim=aim)
        load, self._place = content.written(self._measuring.child.arena)
        self._measuring.load(load)
        verification = Verification(self._asked, self._contract, content, self._environment, self._without)
        self._told = content.next()
        run = partial(self._queue, content=content, verification=verification, near=near)
        for who in there:
            run(who, WARMING, warming=True, probed=who == IMPLEMENTATION)
        for _ in range(WARM_QUEUES):
            warm = run(IMPLEMENTATION, WARMING, warming=True)
        calls = self._calls(warm, name)
        spans = {who: Spans() for who in there}
        idle = [self._measuring.idle() for _ in range(IDLE_QUEUES)]
        counted = self._random.randrange(self._plan.rounds) if self._measuring.host else -1
        for round_ in range(self._plan.rounds):
            last = round_ == self._plan.rounds - 1
            for who in self._random.sample(there, len(there)):
                if not self.alarms:
                    one = self._random.randrange(calls) if who == IMPLEMENTATION and round_ == counted else -1
                    spans[who].add(run(who, calls, checks=self._checks(round_), last=last, counted=one))
        if not self.alarms:
            way = median(one.watched - one.timed.total for one in idle)
            self.alarms += watched(spans[IMPLEMENTATION], way, partial(run, IMPLEMENTATION, calls))
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
            seconds=time.monotonic() - began,
        )

    @property
    def _most(self) -> int:
        """Calls of a queue at most: as many as were asked for, and as the device's memory has room for."""
        moved = self._asked.moved
        room = self._memory // MEMORY_SHARE // max(moved.read, moved.written, 1)
        return max(FEWEST_CALLS, min(self._plan.calls, room))

    def _calls(self, warm: Queued, name: Rotations) -> int:
        """Calls of a queue: enough for its length to dwarf the way to the device and back, and for the cache."""
        if self._executor == "host":
            return self._most
        each = (warm.timed.evaluated + (0 if warm.timed.lazy else warm.timed.called)) // WARMING
        passes = PASSES * self._cache // max(self._asked.moved.read, 1) if name == BEYOND else 0
        return min(self._most, max(LEAST_CALLS, QUEUE // max(each, 1), passes))

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
        probed: bool = False,
        last: bool = False,
        counted: int = -1,
    ) -> Queued:
        own = content.queue(min(NEAR, calls) if near else calls)
        windows = [own[call % len(own)] for call in range(calls)]
        if counted >= 0:
            windows[counted] = self._told
        ours = who == IMPLEMENTATION
        reference = self._asked.benchmark.reference if ours and not warming else ""
        whole = WHOLE if ours and self._asked.moved.written <= WHOLE else 0
        order = message.Queue(who, windows, near, reference, whole, self._place, probed, counted)
        queued = self._measuring.queue(order)
        if ours and queued.outcome is not None:
            self.alarms += queued.outcome.alarms
            self.launches += queued.outcome.launches
            if warming:
                verification.remember(windows)
            elif not self.alarms:
                self._verify(windows, queued.outcome, verification, checks, whole, counted)
            if last and not self.alarms:
                self._fetch(windows, queued.outcome, verification)
        return queued

    def _verify(
        self,
        windows: Sequence[Windows],
        outcome: message.Outcome,
        verification: Verification,
        checks: int,
        whole: int,
        counted: int,
    ) -> None:
        child = self._measuring.child
        contents = [
            bytes_at(child, self._place + call * whole, min(output.nbytes, whole))
            for call, output in enumerate(outcome.outputs)
        ]
        self.alarms += verification.queue(windows, outcome, contents, checks, counted)

    def _fetch(self, windows: Sequence[Windows], outcome: message.Outcome, verification: Verification) -> None:
        """One whole output of the last queue, a part of which every oracle judges."""
        call = verification.draw(len(windows))
        output = outcome.outputs[call]
        count = self._measuring.fetch(call, self._place)
        data = bytes_at(self._measuring.child, self._place, min(count, aligned(self._asked.moved.written) + WHOLE))
        self.alarms += verification.part(windows[call], data, output.dtype, output.shape)

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


__all__ = ["Failure", "Measurement", "Plan"]
