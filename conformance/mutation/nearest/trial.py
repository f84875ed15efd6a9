"""A trial: one call of a case, what is right for it, and whether a wrong rule is noticed by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, contracts, seen
from mlx_assay.conformance.judging.judge import applicable
from mlx_assay.conformance.judging.panel import Expected
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import kind_of

EXECUTOR: Mapping[str, str] = {"name": "host", "f32_denormals": "kept", "simd_sum": "ascending-butterfly"}
"""On one that keeps denormals a rule that flushes them is wrong."""


@dataclass(frozen=True)
class Trial:
    """One call: `plain` arguments as the contract takes them, `prepared` with what its references share.

    `before` are the plain arguments of the call before, which come round: before the first stands the last.
    """

    case: Case
    subcase: Subcase
    contract: Contract
    plain: Arguments
    before: Arguments
    prepared: Arguments
    expected: Expected

    @property
    def right(self) -> np.ndarray:
        """What is right, by the primary oracle."""
        return self.expected.output

    def answer(self, **changed: Any) -> np.ndarray:
        """What the primary oracle gives for other arguments."""
        return np.asarray(self.contract.references[0].compute(self.contract.prepare({**self.plain, **changed})))

    def tells(self, made: np.ndarray) -> bool:
        """Whether an output is told from the right one."""
        if made.shape != self.right.shape or made.dtype != self.right.dtype:
            return True
        relaxations = applicable(self.contract.relaxations, {"executor": EXECUTOR})
        return not self.expected.reached(self.expected.compare(np.asarray(made, order="C"), relaxations))


@dataclass(frozen=True)
class Wrong:
    """A wrong rule. `make` gives the outputs that it would: one, or one a variant, or none where it has no occasion."""

    name: str
    make: Callable[[Trial], Iterator[np.ndarray]]


def trials(case: Case) -> Iterator[Trial]:
    """The calls of a case that return something, of which the primary oracle has an opinion."""
    contract = contracts()[case.operation]
    primary = contract.references[0]
    subcases = [subcase for subcase in kind_of(case).subcases(case) if not subcase.raises]
    for place, subcase in enumerate(subcases):
        plain = seen(subcase, EXECUTOR)
        with np.errstate(all="ignore"):
            prepared = contract.prepare(plain)
            if not primary.applies(prepared):
                continue
            output = np.asarray(primary.compute(prepared), order="C")
            by_distance = primary.ulps is not None and primary.conforms is Verdict.WITHIN_ULP
            ulps = primary.ulps(prepared, output) if primary.ulps and by_distance else None
        before = seen(subcases[place - 1], EXECUTOR)
        yield Trial(case, subcase, contract, plain, before, prepared, Expected(primary, output, ulps))


def missed(case: Case, groups: Sequence[Sequence[Wrong]]) -> list[Sequence[Wrong]]:
    """The groups of wrong rules of which a case tells none from the right one.

    None where an exception is expected of all calls: a wrong rule does not raise.
    """
    left, judged = list(groups), False
    for trial in trials(case):
        judged = True
        left = [group for group in left if not any(_tells(trial, rule) for rule in group)]
        if not left:
            break
    return left if judged else []


def _tells(trial: Trial, rule: Wrong) -> bool:
    with np.errstate(all="ignore"):
        return any(trial.tells(made) for made in rule.make(trial))


def suspected(*names: str) -> Wrong:
    """What a contract's diagnosis suspects by these names: any of them."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        assert trial.contract.suspects is not None
        found = trial.contract.suspects(trial.prepared)
        yield from (found[name]() for name in names if name in found)

    return Wrong(" or ".join(names), make)
