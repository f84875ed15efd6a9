"""Verdicts: a ladder of agreement, and what stands beside the ladder."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What is said of one case."""

    SAME_BITS = "same-bits"
    SAME_VALUE = "same-value"
    WITHIN_ULP = "within-ulp"
    WITHIN_BOUND = "within-bound"
    DIFFERS = "differs"
    ORACLES_DISAGREE = "oracles-disagree"
    UNSUPPORTED = "unsupported"
    ERROR = "error"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    NOT_RUN = "not-run"

    @property
    def on_ladder(self) -> bool:
        """Whether an output was compared with an expected value."""
        return self in LADDER

    def reaches(self, rung: Verdict) -> bool:
        """Whether this verdict is at least as strong as a rung of the ladder."""
        return self.on_ladder and LADDER.index(self) <= LADDER.index(rung)


LADDER = (
    Verdict.SAME_BITS,
    Verdict.SAME_VALUE,
    Verdict.WITHIN_ULP,
    Verdict.WITHIN_BOUND,
    Verdict.DIFFERS,
)

EXIT_CONFORMS = 0
EXIT_DIFFERS = 1
EXIT_USAGE = 2
EXIT_INCOMPLETE = 3

INCOMPLETE = frozenset({Verdict.NOT_RUN, Verdict.ORACLES_DISAGREE})
FAULTS = frozenset({Verdict.DIFFERS, Verdict.ERROR, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.UNSUPPORTED})


def weakest(verdicts: list[Verdict]) -> Verdict:
    """The verdict of a case from those of its subcases: the one that stands last in the enumeration's order.

    What kept a subcase from being compared outranks a difference, and `not-run` is what an empty list gets.
    """
    order = list(Verdict)
    return max(verdicts, key=order.index, default=Verdict.NOT_RUN)
