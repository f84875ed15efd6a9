"""What is found of one call: its outcome held against the expectations of its subcase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlx_assay.conformance.contract import Contract, seen
from mlx_assay.conformance.judging.compare import Comparison, compare
from mlx_assay.conformance.judging.failure import difference_line, extents
from mlx_assay.conformance.judging.panel import Expected, Panel
from mlx_assay.conformance.process.exchange import Outcome
from mlx_assay.conformance.record import Difference
from mlx_assay.conformance.verdict import Verdict, weakest
from mlx_assay.fixtures.case import Subcase

BIT_RUNGS = (Verdict.SAME_BITS, Verdict.SAME_VALUE)
CONFORMING = (*BIT_RUNGS, Verdict.WITHIN_ULP, Verdict.WITHIN_BOUND)
SECOND = "; this was the second call, on other memory, its host arrays overwritten before the evaluation"


@dataclass(frozen=True)
class Finding:
    """A verdict and, where it is no agreement, the text and the difference that tell of it."""

    verdict: Verdict
    message: str = ""
    subcase: Subcase | None = None
    policy: str = ""
    oracle: str = ""
    difference: Difference | None = None
    relaxations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judged:
    """A subcase and all that is expected of it. `expected` is empty where an exception is.

    `executor` is what the executor says of itself.
    """

    contract: Contract
    panel: Panel
    relaxations: Sequence[str]
    subcase: Subcase
    expected: Sequence[Expected]
    executor: Mapping[str, Any] = field(default_factory=dict)

    def finding(self, outcome: Outcome) -> Finding:
        """Judges one call; an input that was changed outweighs a right answer."""
        finding = self._result(outcome)
        if outcome.changed and finding.verdict.on_ladder:
            names = ", ".join(self.contract.parameters[position] for position in outcome.changed)
            return Finding(
                Verdict.ERROR, f"the call changed its input {names}; inputs belong to the caller", self.subcase
            )
        return finding

    def repeated(self, outcome: Outcome) -> Finding:
        """Judges the second call of a subcase, and says that it is the second."""
        finding = self.finding(outcome)
        return finding if finding.verdict in CONFORMING else replace(finding, message=f"{finding.message}{SECOND}")

    def unstable(self, first: Outcome, second: Outcome) -> Finding:
        """Judges two calls of one subcase against each other: every bit must be the same, those of NaN included."""
        if first.array is None or second.array is None:
            return Finding(Verdict.SAME_BITS, subcase=self.subcase)
        if first.array.shape != second.array.shape or first.array.dtype != second.array.dtype:
            return Finding(
                Verdict.DIFFERS, "called again with the same input, it returned another shape or dtype", self.subcase
            )
        comparison = compare(second.array, first.array, ())
        if comparison.rung is Verdict.SAME_BITS:
            return Finding(Verdict.SAME_BITS, subcase=self.subcase)
        why = "called again with the same input on other memory: unwritten, stale or unstable output"
        return self._difference(comparison, first.array, why, "", "same-bits")

    def _result(self, outcome: Outcome) -> Finding:
        if outcome.raised is not None:
            return self._raised(outcome)
        if outcome.type:
            return self._error(f"got {outcome.type}, expected mlx.core.array")
        got = f"{outcome.dtype} {extents(outcome.shape)}"
        if self.subcase.raises:
            return self._error(f"got {got}, expected {' or '.join(self.subcase.raises)} to be raised")
        want = self.expected[0].output
        if outcome.array is None or outcome.array.dtype != want.dtype or outcome.array.shape != want.shape:
            return self._error(f"got {got}, expected {want.dtype} {extents(want.shape)}")
        return self._compared(outcome.array)

    def _raised(self, outcome: Outcome) -> Finding:
        raised = outcome.raised
        assert raised is not None
        if set(raised.bases) & set(self.subcase.raises):
            return Finding(Verdict.SAME_BITS, subcase=self.subcase)
        expected = " or ".join(self.subcase.raises) or "a result"
        disguised = " (not the built-in one)" if raised.type in self.subcase.raises else ""
        what = f"raised {raised.type}{disguised}: " if raised.type else ""
        text = f"{what}{raised.message}, expected {expected}"
        if raised.traceback:
            text += "\n" + "\n".join(f"    {row}" for row in raised.traceback.rstrip().splitlines()[-8:])
        verdict = Verdict.UNSUPPORTED if "NotImplementedError" in raised.bases else Verdict.ERROR
        return Finding(verdict, text, self.subcase)

    def _error(self, text: str) -> Finding:
        return Finding(Verdict.ERROR, text, self.subcase)

    def _compared(self, got: np.ndarray) -> Finding:
        """The weakest rung over the references that ask for bits; the others only have to hold."""
        rungs: list[tuple[Verdict, Verdict]] = []
        used: list[str] = []
        for expected in self.expected:
            comparison = expected.compare(got, self.relaxations)
            if not expected.reached(comparison):
                return self._missed(comparison, expected, got)
            rungs.append((expected.reference.conforms, comparison.rung))
            if comparison.rung is not Verdict.SAME_BITS:
                used += comparison.relaxations
        by_bits = [rung for needed, rung in rungs if needed in BIT_RUNGS]
        verdict = weakest(by_bits or [rung for _, rung in rungs])
        return Finding(verdict, subcase=self.subcase, relaxations=tuple(dict.fromkeys(used)))

    def _missed(self, comparison: Comparison, expected: Expected, got: np.ndarray) -> Finding:
        want = expected.output
        why = self._explained(got, want, tuple(comparison.places[0].index))
        policy = str(expected.reference.conforms)
        return self._difference(comparison, want, why, self.panel.title(expected.reference), policy)

    def _explained(self, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
        """The contract's words; an output so wrong that they fail must not end the judge."""
        try:
            with np.errstate(all="ignore"):
                arguments = self.contract.prepare(seen(self.subcase, self.executor))
                return self.contract.explain(arguments, got, want, index)
        except Exception as error:
            return f"no explanation: {type(error).__name__}: {error}"

    def _difference(self, comparison: Comparison, want: np.ndarray, why: str, oracle: str, policy: str) -> Finding:
        place, count, total = comparison.places[0], comparison.count, comparison.total
        line = difference_line(place, want.dtype, self.subcase, count, total, comparison.worst_ulp, why)
        difference = Difference(
            subcase=self.subcase.label,
            oracle=oracle,
            count=count,
            total=total,
            worst_ulp=comparison.worst_ulp,
            places=list(comparison.places),
            explanation=why,
        )
        return Finding(Verdict.DIFFERS, line, self.subcase, policy, oracle, difference)
