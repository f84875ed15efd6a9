"""What is found of one call: its outcome held against the expectations of its subcase."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, Reference, seen
from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.diagnosis.exhibit import Exhibit
from mlx_assay.conformance.judging.compare import Comparison, compare
from mlx_assay.conformance.judging.failure import difference_line, extents
from mlx_assay.conformance.judging.panel import Expected, Panel
from mlx_assay.conformance.process.exchange import POISONS, Outcome
from mlx_assay.conformance.record import Difference
from mlx_assay.conformance.verdict import Verdict, weakest
from mlx_assay.fixtures.case import Subcase

BIT_RUNGS = (Verdict.SAME_BITS, Verdict.SAME_VALUE)
CONFORMING = (*BIT_RUNGS, Verdict.WITHIN_ULP, Verdict.WITHIN_BOUND)
SECOND = "; this was the second call, on other memory, its host arrays overwritten before the evaluation"


@dataclass(frozen=True)
class Finding:
    """A verdict and, where it is no agreement, the text and the difference that tell of it.

    `launches` are those of kernels that ran under the checker in the calls that it is about.
    """

    verdict: Verdict
    message: str = ""
    subcase: Subcase | None = None
    policy: str = ""
    oracle: str = ""
    difference: Difference | None = None
    relaxations: tuple[str, ...] = ()
    evidence: Evidence | None = None
    exhibit: Exhibit | None = None
    launches: int = 0


@dataclass(frozen=True)
class Judged:
    """A subcase and all that is expected of it. `expected` is empty where an exception is.

    `executor` is what the executor says of itself. `outcomes` are those of the whole case, both rounds, with `count`
    calls each, `answers` the expected outputs of its subcases, and `index` is this one's place among them.
    """

    contract: Contract
    panel: Panel
    relaxations: Sequence[str]
    subcase: Subcase
    expected: Sequence[Expected]
    executor: Mapping[str, Any] = field(default_factory=dict)
    outcomes: Sequence[Outcome] = ()
    index: int = 0
    count: int = 1
    answers: Sequence[np.ndarray | None] = ()

    def finding(self, outcome: Outcome, round_: int = 0) -> Finding:
        """Judges one call; an input that was changed, or a kernel at fault, outweighs a right answer."""
        if outcome.found:
            return self._error(f"the checker: {outcome.found}")
        finding = self._result(outcome, round_)
        if outcome.changed and finding.verdict.on_ladder:
            names = ", ".join(self.contract.parameters[position] for position in outcome.changed)
            return Finding(
                Verdict.ERROR, f"the call changed its input {names}; inputs belong to the caller", self.subcase
            )
        return finding

    def repeated(self, outcome: Outcome) -> Finding:
        """Judges the second call of a subcase, and says that it is the second."""
        finding = self.finding(outcome, 1)
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
        whole = self._evidence(comparison, second.array, first.array, 1)
        evidence = replace(whole, marks=None, suspects=None, addends=None, broken=None)
        return self._difference(comparison, evidence, why, "", "same-bits")

    def _result(self, outcome: Outcome, round_: int) -> Finding:
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
        return self._compared(outcome.array, round_)

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
            text += "\n" + "\n".join(raised.traceback.rstrip().splitlines()[-8:])
        verdict = Verdict.UNSUPPORTED if "NotImplementedError" in raised.bases else Verdict.ERROR
        return Finding(verdict, text, self.subcase)

    def _error(self, text: str) -> Finding:
        return Finding(Verdict.ERROR, text, self.subcase)

    def _compared(self, got: np.ndarray, round_: int) -> Finding:
        """The weakest rung over the references that ask for bits; the others only have to hold."""
        rungs: list[tuple[Verdict, Verdict]] = []
        used: list[str] = []
        for expected in self.expected:
            comparison = expected.compare(got, self.relaxations)
            if not expected.reached(comparison):
                return self._missed(comparison, expected, got, round_)
            rungs.append((expected.reference.conforms, comparison.rung))
            if comparison.rung is not Verdict.SAME_BITS:
                used += comparison.relaxations
        by_bits = [rung for needed, rung in rungs if needed in BIT_RUNGS]
        verdict = weakest(by_bits or [rung for _, rung in rungs])
        return Finding(verdict, subcase=self.subcase, relaxations=tuple(dict.fromkeys(used)))

    def _missed(self, comparison: Comparison, expected: Expected, got: np.ndarray, round_: int) -> Finding:
        evidence = self._evidence(comparison, got, expected.output, round_)
        why = self._explained(evidence, tuple(comparison.places[0].index))
        reference = expected.reference
        policy = str(reference.conforms)
        return self._difference(
            comparison, evidence, why, self.panel.title(reference), policy, self._rule(reference, evidence)
        )

    def _rule(self, reference: Reference, evidence: Evidence) -> str:
        """The number of the contract's rule that a reference names, else of the one that any other output breaks."""
        named = re.match(r"rule (\d+)\b", reference.rule)
        numbers = {str(rule.number) for rule in self.contract.rules}
        if named and named[1] in numbers:
            return named[1]
        try:
            return evidence.rule()
        except Exception:  # of a contract's own code, which must not end the judge
            return ""

    def _evidence(self, comparison: Comparison, got: np.ndarray, want: np.ndarray, round_: int) -> Evidence:
        call = self.index + round_ * self.count
        other = self.index + (1 - round_) * self.count
        return Evidence(
            got=got,
            want=want,
            at=comparison.at,
            arguments=self._prepared,
            marks=self.contract.marks,
            suspects=self.contract.suspects,
            addends=self.contract.addends,
            broken=self.contract.broken,
            poison=POISONS[round_],
            other=self.outcomes[other].array if other < len(self.outcomes) else None,
            other_poison=POISONS[1 - round_],
            earlier=list(self._earlier(call)),
        )

    def _earlier(self, call: int) -> Iterator[tuple[str, np.ndarray]]:
        """What calls before this one returned, and what they should have returned, the latest first."""
        for back, index in enumerate(range(call - 1, max(call - self.count, 0) - 1, -1), 1):
            where = "the call before" if back == 1 else f"{back} calls before"
            came = self.outcomes[index].array if index < len(self.outcomes) else None
            answer = self.answers[index % self.count] if self.answers and index % self.count != self.index else None
            for name, array in ((f"the output of {where}", came), (f"the right answer of {where}", answer)):
                if array is not None:
                    yield name, array

    @cached_property
    def _prepared(self) -> Arguments:
        """The arguments as oracles see them; none where they cannot be prepared, which ends no judge."""
        plain = seen(self.subcase, self.executor)
        try:
            with np.errstate(all="ignore"):
                return self.contract.prepare(plain)
        except Exception:
            return plain

    def _explained(self, evidence: Evidence, index: tuple[int, ...]) -> str:
        """The contract's words; an output so wrong that they fail must not end the judge."""
        try:
            with np.errstate(all="ignore"):
                return self.contract.explain(self._prepared, evidence.got, evidence.want, index)
        except Exception as error:
            return f"no explanation: {type(error).__name__}: {error}"

    def _difference(
        self, comparison: Comparison, evidence: Evidence, why: str, oracle: str, policy: str, rule: str = ""
    ) -> Finding:
        place, count, total = comparison.places[0], comparison.count, comparison.total
        line = difference_line(place, evidence.want.dtype, self.subcase, count, total, comparison.worst_ulp, why)
        difference = Difference(
            subcase=self.subcase.label,
            oracle=oracle,
            count=count,
            total=total,
            worst_ulp=comparison.worst_ulp,
            places=list(comparison.places),
            explanation=why,
            policy=policy,
            rule=rule,
        )
        return Finding(
            *(Verdict.DIFFERS, line, self.subcase, policy, oracle, difference),
            evidence=evidence,
            exhibit=self._exhibit(evidence),
        )

    def _exhibit(self, evidence: Evidence) -> Exhibit:
        calls = [index for index in (self.index, self.index + self.count) if index < len(self.outcomes)]
        rounds = [self.outcomes[index].array for index in calls] or [evidence.got]
        wants = [(self.panel.title(one.reference), one.output) for one in self.expected]
        return Exhibit(self.subcase, rounds, wants, evidence.at)
