"""The examiner: one block's outcome held against the contract's oracles, as the judge holds a case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, contracts, seen
from mlx_assay.conformance.judging.compare import compare
from mlx_assay.conformance.judging.finding import BIT_RUNGS, Finding, Judged
from mlx_assay.conformance.judging.judge import same_bits
from mlx_assay.conformance.judging.panel import Disagreement, Expected, Loader, Panel
from mlx_assay.conformance.judging.ulp import encodings, has_distance, is_nan
from mlx_assay.conformance.process.exchange import POISONS, Outcome
from mlx_assay.conformance.record import Place
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.conformance.verdict import Verdict, weakest
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.softcap_sieve import admitted

PLACES = 16
"""Places of a block that are told; all are counted."""

SIEVE = "precise-softcap"
"""The oracle whose rule the sieve answers for."""


@dataclass(frozen=True)
class Examined:
    """What was found of one block.

    `differing` counts places of the output, `doubtful` those that went through the sieve to the whole panel. `places`
    and their `told` words are the first ones.
    """

    verdict: Verdict
    differing: int = 0
    doubtful: int = 0
    places: tuple[Place, ...] = ()
    told: tuple[str, ...] = ()
    message: str = ""
    worst_ulp: int | None = 0
    relaxations: tuple[str, ...] = ()


class Examiner:
    """Judges the blocks of one sweep. `every` asks all oracles for every input, where a sieve would do."""

    def __init__(
        self,
        sweep: Sweep,
        executor: Mapping[str, Any],
        relaxations: Sequence[str],
        *,
        every: bool = False,
        oracles: Loader = load,
    ) -> None:
        self.sweep = sweep
        self.contract: Contract = contracts()[sweep.case.operation]
        self._sieved = sweep.sieved and not every
        self._executor = executor
        self._relaxations = relaxations
        self.without = self._spared() if self._sieved else []
        self.panel = Panel(self.contract, oracles, relaxations, self.without)

    def fault(self) -> Finding | None:
        """Why nothing can be judged here, if that is so."""
        if not self.panel.references:
            return Finding(Verdict.NOT_RUN, f"No oracle is there: {', '.join(self.panel.missing)} missing")
        if fault := self.panel.fault():
            return Finding(Verdict.ORACLES_DISAGREE, fault)
        return None

    def arguments(self, subcase: Subcase) -> list[Any]:
        """The arguments of a block's call, in the contract's order."""
        return [subcase.arguments[name] for name in self.contract.parameters]

    def examine(self, subcase: Subcase, outcomes: Sequence[Outcome], rounds: Sequence[int]) -> Examined:
        """Judges one block; `rounds` say with what the output of each call was poisoned.

        Of one call no expected value may be its poison. Of two each is judged, and every bit of them must be the same.
        """
        only = rounds[0] if len(rounds) == 1 else None
        first, *others = outcomes
        found = self._one(subcase, first, only)
        for other in others:
            if not same_bits(first, other):
                found = _worse(found, self._one(subcase, other, only), _unstable(first, other))
        return found

    def _one(self, subcase: Subcase, outcome: Outcome, only: int | None) -> Examined:
        if self._sieved and _regular(outcome, subcase):
            return self._by_sieve(subcase, outcome, only)
        return self._whole(subcase, outcome, only)

    def _spared(self) -> list[str]:
        """Oracles that the sieve leaves out: those that only bound, but for the one whose rule it answers for."""
        names = {reference.oracle.replace("_", "-") for reference in self.contract.references}
        by_bits = {one.oracle.replace("_", "-") for one in self.contract.references if one.conforms in BIT_RUNGS}
        return sorted(names - by_bits - {SIEVE})

    def _expected(self, subcase: Subcase) -> list[Expected] | Disagreement:
        try:
            expected = self.panel.expect(seen(subcase, self._executor))
        except Disagreement as disagreement:
            return disagreement
        return expected or Disagreement("No oracle of the contract has an opinion on these arguments")

    def _whole(self, subcase: Subcase, outcome: Outcome, only: int | None) -> Examined:
        expected = self._expected(subcase)
        if isinstance(expected, Disagreement):
            return Examined(Verdict.ORACLES_DISAGREE, message=str(expected))
        if _poisoned(expected[0].output, only):
            return _powerless(only)
        judged = Judged(
            self.contract, self.panel, self._relaxations, subcase, expected, self._executor, (outcome,), 0, 1
        )
        return self._found(judged.finding(outcome), subcase)

    def _found(self, finding: Finding, subcase: Subcase) -> Examined:
        difference = finding.difference
        if difference is None:
            return Examined(finding.verdict, message=finding.message, relaxations=finding.relaxations)
        told = tuple(self.sweep.told(subcase, tuple(place.index)) for place in difference.places)
        why = f"{difference.explanation}; " if difference.explanation else ""
        message = f"the first of these: {why}{difference.policy} of {difference.oracle} was needed"
        found = (finding.verdict, difference.count, 0, tuple(difference.places), told, message)
        return Examined(*found, difference.worst_ulp, finding.relaxations)

    def _by_sieve(self, subcase: Subcase, outcome: Outcome, only: int | None) -> Examined:
        """Bits against the primary oracle everywhere, and of the other oracles of bits against it.

        The whole panel judges where these differ, and where the sieve does not answer for its rule. The operation is
        one of single elements, so that a part of a block can be judged alone.
        """
        given, got = seen(subcase, self._executor), outcome.array
        assert got is not None
        try:
            with np.errstate(all="ignore"):
                want, *others = self._by_bits(given)
        except Exception as error:
            return Examined(Verdict.ORACLES_DISAGREE, message=f"An oracle raised {type(error).__name__}: {error}")
        if _poisoned(want, only):
            return _powerless(only)
        by_bits = compare(got, want, self._relaxations)
        wrong = by_bits.at if by_bits.rung is Verdict.DIFFERS else np.zeros(0, np.int64)
        sure = admitted(given["x"], given["cap"], want)
        for other in others:
            apart = compare(other, want, self._relaxations)
            if apart.rung is Verdict.DIFFERS:
                sure[apart.at] = False
        sure[wrong] = True
        doubtful = np.flatnonzero(~sure)
        found = Examined(
            by_bits.rung,
            int(wrong.size),
            int(doubtful.size),
            worst_ulp=by_bits.worst_ulp if wrong.size else 0,
            relaxations=by_bits.relaxations,
        )
        if wrong.size:
            shown = self._part(subcase, outcome, wrong[:PLACES], only)
            found = _joined(found, replace(shown, differing=0))
        if doubtful.size:
            found = _joined(found, self._part(subcase, outcome, doubtful, only))
        return found

    def _by_bits(self, given: Arguments) -> Iterator[np.ndarray]:
        """What the oracles of bits expect, the primary one first."""
        for reference in self.panel.references:
            if reference.conforms in BIT_RUNGS and reference.applies(given):
                yield np.asarray(reference.compute(given), order="C")

    def _part(self, subcase: Subcase, outcome: Outcome, at: np.ndarray, only: int | None) -> Examined:
        """The whole panel on some elements of a block; their places are those in the block."""
        assert outcome.array is not None
        given = {**subcase.arguments, "x": Tensor(_base(subcase)[at])}
        found = self._whole(Subcase(subcase.label, given), Outcome(None, array=outcome.array[at]), only)
        places = tuple(Place([int(at[place.index[0]])], place.got, place.want) for place in found.places)
        return replace(found, places=places)


def _base(subcase: Subcase) -> np.ndarray:
    given = subcase.arguments["x"]
    assert isinstance(given, Tensor)
    return given.base


def _regular(outcome: Outcome, subcase: Subcase) -> bool:
    """Whether a call came to an array like x, and nothing else is to be said of it."""
    base, array = _base(subcase), outcome.array
    odd = outcome.raised or outcome.type or outcome.found or outcome.changed or array is None
    return not odd and array is not None and array.dtype == base.dtype and array.shape == base.shape


def _joined(first: Examined, second: Examined) -> Examined:
    """Both of them about parts of one block."""
    verdicts = [first.verdict, second.verdict]
    worst = None if None in (first.worst_ulp, second.worst_ulp) else max(first.worst_ulp or 0, second.worst_ulp or 0)
    return Examined(
        weakest(verdicts),
        first.differing + second.differing,
        first.doubtful + second.doubtful,
        (*first.places, *second.places),
        (*first.told, *second.told),
        first.message or second.message,
        worst,
        tuple(dict.fromkeys([*first.relaxations, *second.relaxations])),
    )


def _worse(*found: Examined) -> Examined:
    order = list(Verdict)
    return max(found, key=lambda one: order.index(one.verdict))


def _unstable(first: Outcome, second: Outcome) -> Examined:
    """What is said of two calls with one input; those of which one has no array are judged by themselves."""
    if first.array is None or second.array is None or first.array.shape != second.array.shape:
        return Examined(Verdict.SAME_BITS)
    if first.array.dtype != second.array.dtype:
        return Examined(Verdict.SAME_BITS)
    apart = compare(second.array, first.array, ())
    if apart.rung is Verdict.SAME_BITS:
        return Examined(Verdict.SAME_BITS)
    why = "called again with the same input on other memory: unwritten, stale or unstable output"
    return Examined(apart.rung, apart.count, 0, apart.places, ("",) * len(apart.places), why, apart.worst_ulp)


def _poisoned(want: np.ndarray, only: int | None) -> bool:
    """Whether an output that was never written could pass somewhere: the only poison is what is expected there."""
    if only is None:
        return False
    pattern = np.full(-(-max(want.itemsize, 4) // 4), POISONS[only], np.uint32)
    poison = pattern.view(want.dtype)[:1]
    if bool((encodings(want) == encodings(poison)).any()):
        return True
    return has_distance(want.dtype) and bool(is_nan(poison).any() and is_nan(want).any())


def _powerless(only: int | None) -> Examined:
    pattern = f"0x{POISONS[only or 0]:08x}"
    return Examined(Verdict.NOT_RUN, message=f"block without power: some of it equals the poison {pattern}")
