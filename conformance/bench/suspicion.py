"""Suspicions: what the clocks of queues tell that no honest queue does, confirmed by more queues."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from mlx_assay.conformance.bench.message import Alarm
from mlx_assay.conformance.bench.process import Queued

CLOCKS_APART, LEAST_APART = 0.02, 100_000
"""The share of a span, and the nanoseconds, by which the two clocks of one process may differ."""
CONFIRMING = 20
"""Queues that all must show what the clocks make suspicious: on a busy machine the judge may sleep through some."""
CLOCK_SHARE = 0.67
"""Of what the judge's clock tells, beyond the way there and back, the process's own clock must tell so much."""
LEAST_WATCHED = 2_000_000
"""Nanoseconds of a queue below which the judge's clock says too little."""


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


def watched(spans: Spans, way: float, again: Callable[[], Queued]) -> list[Alarm]:
    """What the clocks told of the implementation's queues; a suspicion must hold in each of more queues.

    `way` is what the judge's clock tells of a queue of no calls beyond what its own clocks do; `again` runs one more.
    """
    for suspected in (_clock, _late):
        if not spans.clocks or not suspected(spans, way):
            continue
        more = Spans()
        for _ in range(CONFIRMING):
            more.add(again())
            if not suspected(more, way):
                break
        else:
            return suspected(more, way)
    return []


def _clock(spans: Spans, way: float) -> list[Alarm]:
    least = min(spans.clocks, key=lambda clocks: (clocks.watched - way) / max(clocks.own, 1))
    if least.watched - way > LEAST_WATCHED and least.own < CLOCK_SHARE * (least.watched - way):
        told = f"a queue took {_ms(least.watched)} by the judge's clock and {_ms(least.own)} by its own"
        return [Alarm("clock", f"{told}, and no other less of it")]
    apart = min(abs(clocks.own - clocks.raw) - CLOCKS_APART * clocks.raw for clocks in spans.clocks)
    return [Alarm("clock", "the two clocks of its process go differently")] if apart > LEAST_APART else []


def _late(spans: Spans, way: float) -> list[Alarm]:
    pairs = list(zip(spans.late, spans.wholes, strict=True))
    if not all(late > LEAST_WATCHED and late > whole for late, whole in pairs):
        return []
    late = min(late for late, _ in pairs)
    return [Alarm("deferred", f"reading its outputs waited {_ms(late)} for work after the span, in every queue")]


def _ms(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e6:,.2f} ms"
