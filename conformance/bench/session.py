"""One benchmark after another: conformance first, then figures, then what may be said of them."""

from __future__ import annotations

from collections.abc import Sequence

from mlx_assay.conformance.bench.benchmark import Asked
from mlx_assay.conformance.bench.conformity import Unjudged, conformity
from mlx_assay.conformance.bench.measurement import Measurement, Plan
from mlx_assay.conformance.bench.process import Failure, Measuring, Tricked
from mlx_assay.conformance.bench.report import Copied, Judged, Outcome, Result, Rotation
from mlx_assay.conformance.judging.panel import Disagreement
from mlx_assay.conformance.process.implementation import Implementation

HOST_PLAN = Plan(rounds=3, calls=4, checks=6)
"""On the host, where outputs alone are looked at."""


class Session:
    """The implementation twice, in the process that judges it and in the one that measures it."""

    def __init__(
        self,
        implementation: Implementation,
        measuring: Measuring,
        plan: Plan,
        cases: Sequence[str],
        without: Sequence[str],
        copy: Copied | None,
        against: str | None,
        beside: Sequence[str] = (),
    ) -> None:
        self._implementation = implementation
        self._measuring = measuring
        self._plan = plan if copy else HOST_PLAN
        self._cases = cases
        self._without = without
        self._speed = copy.bytes_a_second if copy else 0.0
        self._against = against
        self._beside = beside
        self._judged: dict[str, Judged] = {}

    def result(self, asked: Asked) -> Result:
        """What came of one benchmark; never raises for what an implementation does."""
        try:
            judged = self._conformity(asked.operation)
        except Unjudged as error:
            return _result(asked, "incomplete", message=str(error))
        if judged.failing:
            return _result(asked, "differs", judged=judged, message=judged.message)
        environment = self._implementation.environment
        measurement = Measurement(
            asked, self._measuring, environment, self._plan, self._without, self._speed, self._beside
        )
        try:
            rotations = measurement.rotations()
        except Tricked as tricked:
            return _result(asked, "trick", judged=judged, trick=tricked.alarm.trick, message=tricked.alarm.text)
        except Failure as failure:
            self._measuring.restart()
            return _result(asked, "error", judged=judged, message=str(failure))
        except Disagreement as error:
            return _result(asked, "incomplete", judged=judged, message=str(error))
        if measurement.alarms:
            first = measurement.alarms[0]
            told = "; ".join(dict.fromkeys(alarm.text for alarm in measurement.alarms))
            return _result(asked, "trick", judged=judged, rotations=rotations, trick=first.trick, message=told)
        return _result(asked, "measured", judged=judged, rotations=rotations)

    def _conformity(self, operation: str) -> Judged:
        if operation not in self._judged:
            self._judged[operation] = conformity(operation, self._implementation, self._cases, self._without)
        return self._judged[operation]


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
