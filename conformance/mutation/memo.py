"""Inputs and expectations of cases, kept between the mutants that are judged on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from mlx_assay.conformance.contract import EXECUTOR, Arguments, Contract, Reference, contracts
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.record import Record
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import Kind, kind_of
from mlx_assay.fixtures.tensor import Tensor

KEPT = 1 << 20
"""Bytes of inputs above which a case is made anew each time."""


class Inputs(Kind):
    """A kind whose subcases are made once."""

    def __init__(self, kind: Kind, made: list[Subcase]) -> None:
        super().__init__(**{name: getattr(kind, name) for name in kind.__dataclass_fields__})
        object.__setattr__(self, "_made", made)

    def subcases(self, case: Case) -> list[Subcase]:
        """The subcases that were made before."""
        made: list[Subcase] = self.__dict__["_made"]
        return made


@dataclass
class Answers:
    """What oracles said of one case: they are asked in the same order each time, and answer from here then.

    The oracles are NumPy's and other libraries' code in this process, which no mutant reaches.
    """

    contract: Contract
    subcases: list[Subcase]
    _prepared: list[Arguments] = field(default_factory=list)
    _said: dict[tuple[str, int, int], Any] = field(default_factory=dict)
    _turn: int = 0

    def asked(self) -> Contract:
        """The contract, to be judged by once."""
        self._turn = 0
        references = tuple(self._reference(index, one) for index, one in enumerate(self.contract.references))
        return replace(self.contract, prepare=self._prepare, references=references)

    def _prepare(self, arguments: Arguments) -> Arguments:
        turn, self._turn = self._turn, self._turn + 1
        if turn == len(self._prepared):
            self._prepared.append({**self.contract.prepare(arguments), TURN: turn})
        elif turn > len(self._prepared):
            raise RuntimeError("Expected subcases in their order but one was left out")
        return {**self._prepared[turn], EXECUTOR: arguments[EXECUTOR]}

    def _reference(self, index: int, one: Reference) -> Reference:
        def once(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            def said(arguments: Arguments, *more: Any) -> Any:
                key = (name, index, arguments[TURN])
                if key not in self._said:
                    self._said[key] = function(arguments, *more)
                return self._said[key]

            return said

        return replace(
            one,
            compute=once("compute", one.compute),
            applies=once("applies", one.applies),
            ulps=once("ulps", one.ulps) if one.ulps else None,
        )


TURN = "turn"
"""Under this name stands the number of a subcase among those that oracles are asked about."""


class Memo:
    """Cases by id, with what is kept of each."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Kind, Answers]] = {}

    def judge(self, case: Case, implementation: Implementation) -> Record:
        """Judges a case as `judge` does, with the inputs and expectations of the last time."""
        kind, answers = self._known.get(case.id) or self._made(case)
        return judge(case, implementation, kind=kind, contract=answers.asked(), diagnosed=False)

    def _made(self, case: Case) -> tuple[Kind, Answers]:
        kind = kind_of(case)
        subcases = kind.subcases(case)
        held = Inputs(kind, subcases), Answers(contracts()[case.operation], subcases)
        values = (value for subcase in subcases for value in subcase.arguments.values())
        if sum(value.base.nbytes for value in values if isinstance(value, Tensor)) <= KEPT:
            self._known[case.id] = held
        return held
