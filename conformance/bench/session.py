"""One benchmark after another: conformance first, then figures or counts, then what may be said of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from mlx_assay.conformance.bench.benchmark import Asked
from mlx_assay.conformance.bench.comparison import compared, told
from mlx_assay.conformance.bench.conformity import Unjudged, conformity
from mlx_assay.conformance.bench.counts import form, uncounted
from mlx_assay.conformance.bench.measurement import Measurement, Plan
from mlx_assay.conformance.bench.process import Failure, Measuring, Tricked
from mlx_assay.conformance.bench.report import Copied, Judged, Outcome, Result, Rotation
from mlx_assay.conformance.judging.panel import Disagreement
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.impl.executors.counting import DEVICES, H200
from mlx_assay.impl.executors.counting.counts import Counts

TINY_PLAN = Plan(rounds=5, calls=256, checks=5)
HOST_PLAN = Plan(rounds=3, calls=4, checks=6)
"""On the host, where outputs alone are looked at."""


@dataclass
class Side:
    """One implementation twice: in the process that judges it, and in the one that measures it."""

    name: str
    implementation: Implementation
    measuring: Measuring
    judged: dict[str, Judged] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def conformity(self, operation: str, cases: Sequence[str], without: Sequence[str]) -> Judged:
        """What came of the cases of an operation; judged once. Unjudged."""
        if operation not in self.judged:
            self.judged[operation] = conformity(operation, self.implementation, cases, without)
        return self.judged[operation]


@dataclass(frozen=True)
class Session:
    """How much is measured, of which cases conformance is asked, who runs beside, and the device's copy speed.

    `models` are the modelled devices by which two forms are compared on the host.
    """

    plan: Plan
    cases: Sequence[str] = ()
    without: Sequence[str] = ()
    beside: Sequence[str] = ()
    copy: Copied | None = None
    models: Sequence[str] = (H200.name,)

    def result(self, asked: Asked, side: Side, against: Side | None = None) -> Result:
        """What came of one benchmark; never raises for what an implementation does."""
        seed = random.SystemRandom().getrandbits(31)
        result, launches = self._one(asked, side, seed)
        if side.measuring.host and result.outcome == "measured":
            result = msgspec.structs.replace(result, forms=[form(side.name, launches, asked.moved.total)])
        if against is None or result.outcome != "measured":
            return result
        other, more = self._one(asked, against, seed)
        if other.outcome != "measured":
            return msgspec.structs.replace(result, comparison=self._not_compared(other, against), other=other.outcome)
        least = asked.moved.total
        forms = (result.forms[0], form(against.name, more, least))
        result = msgspec.structs.replace(result, forms=list(forms))
        for each in forms:
            if why := uncounted(each, least):
                return msgspec.structs.replace(result, comparison=f"not compared: {each.name}: {why}")
        names = forms[0].name, forms[1].name
        found = [compared(launches, more, names, DEVICES[model]) for model in self.models]
        words = "\n".join(line for each in found for line in told(each))
        return msgspec.structs.replace(result, comparison=words, compared=found)

    def _not_compared(self, other: Result, against: Side) -> str:
        """Why; of a case that differs the whole once."""
        if other.outcome != "differs" or other.judged is None:
            return f"{against.name} is not compared: {other.outcome} {other.trick}: {other.message}"
        why = f"{against.name} is not compared: it differs on {other.judged.failing}"
        if other.operation in against.told:
            return f"{why}, as said above"
        against.told.add(other.operation)
        return f"{why}: {other.message}"

    def _one(self, asked: Asked, side: Side, seed: int) -> tuple[Result, list[Counts]]:
        try:
            judged = side.conformity(asked.operation, self.cases, self.without)
        except Unjudged as error:
            return _result(asked, "incomplete", message=str(error)), []
        if judged.failing:
            return _result(asked, "differs", judged=judged, message=judged.message), []
        plan = HOST_PLAN if side.measuring.host else self.plan
        speed = self.copy.bytes_a_second if self.copy else 0.0
        where = (asked, side.measuring, side.implementation.environment)
        measurement = Measurement(*where, plan, self.without, speed, self.beside, (), seed)
        launches: list[Counts] = []
        rotations: list[Rotation] = []
        try:
            rotations = measurement.rotations()
            if not side.measuring.host and not measurement.alarms:
                rotations += self._next_to_nothing(asked, side, measurement)
            launches = measurement.launches
        except Tricked as tricked:
            measurement.alarms.append(tricked.alarm)
        except Failure as failure:
            side.measuring.restart()
            return _result(asked, "error", judged=judged, message=str(failure)), []
        except Disagreement as error:
            return _result(asked, "incomplete", judged=judged, message=str(error)), []
        if measurement.alarms:
            words = "; ".join(dict.fromkeys(alarm.text for alarm in measurement.alarms))
            trick = measurement.alarms[0].trick
            return _result(asked, "trick", judged=judged, rotations=rotations, trick=trick, message=words), []
        return _result(asked, "measured", judged=judged, rotations=rotations), launches

    def _next_to_nothing(self, asked: Asked, side: Side, measurement: Measurement) -> list[Rotation]:
        """What calls cost whatever they are asked, of the implementation and of stock; without the bytes' time."""
        tiny = Asked(asked.operation, asked.dtype, asked.benchmark.tiny, asked.benchmark)
        where = (tiny, side.measuring, side.implementation.environment)
        other = Measurement(*where, TINY_PLAN, self.without, 0.0, ("none",), ("next to nothing",))
        found = other.rotations()
        measurement.alarms += other.alarms
        return found


def _result(
    asked: Asked,
    outcome: Outcome,
    *,
    judged: Judged | None = None,
    rotations: Sequence[Rotation] = (),
    trick: str = "",
    message: str = "",
) -> Result:
    moved = asked.moved
    return Result(
        id=asked.id,
        operation=asked.operation,
        dtype=asked.dtype,
        shape=dict(asked.shape),
        outcome=outcome,
        read_bytes=moved.read,
        written_bytes=moved.written,
        trick=trick,
        message=message,
        judged=judged,
        rotations=list(rotations),
    )
