"""An implementation that runs nothing: a test writes down what its calls come to, and the judge is seen alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mlx_assay.conformance.contract import Contract, Reference
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.child import Death
from mlx_assay.conformance.process.exchange import Outcome
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import Kind
from mlx_assay.fixtures.tensor import Tensor

FLUSHING = {"name": "host", "f32_denormals": "flushed"}


def subcase(*values: float, label: str = "row", raises: tuple[str, ...] = (), **plain: Any) -> Subcase:
    """A row of f32 as the argument x, and plain arguments behind it."""
    return Subcase(label, {"x": Tensor(np.array(values, np.float32)), **plain}, raises=raises)


def returned(*values: float, dtype: Any = np.float32, changed: tuple[int, ...] = (), launches: int = 0) -> Outcome:
    """A call that returned an array."""
    return of(np.array(values, dtype), changed, launches)


def of(array: np.ndarray, changed: tuple[int, ...] = (), launches: int = 0) -> Outcome:
    """A call that returned this array."""
    return Outcome(dtype=str(array.dtype), shape=array.shape, array=array, changed=changed, launches=launches)


class Shelf:
    """A loader of oracles by name, each a function of the arguments' x."""

    def __init__(self, **oracles: Callable[[np.ndarray], np.ndarray]) -> None:
        self._modules = {
            name: SimpleNamespace(NAME=name, version=lambda: "1.0", self_test=lambda: None, double=compute)
            for name, compute in oracles.items()
        }

    def __call__(self, name: str) -> Any:
        return self._modules[name]

    def reference(self, name: str, conforms: Verdict = Verdict.SAME_VALUE, **fields: Any) -> Reference:
        """The part of an oracle in a contract."""
        return Reference(name, lambda arguments: np.asarray(self(name).double(arguments["x"])), conforms, **fields)


DOUBLE = Shelf(right=lambda x: x + x)


class Played:
    """Stands for a process: `outcomes` are what its calls come to, in order; then it may `die`."""

    target: str | None = "played"
    executor: str | None = "host"
    profile: str | None = None
    checked = False
    operations = ("double",)

    def __init__(self, outcomes: Sequence[Outcome], die: BaseException | None = None, begin: Exception | None = None):
        self.environment: dict[str, Any] = {"executor": FLUSHING}
        self.asked: list[Any] = []
        self.patience = -1.0
        self.said: list[str] = []
        self._coming, self._die, self._begin = list(outcomes), die, begin
        self.outcomes: list[Outcome] = []
        self.child = SimpleNamespace(end=lambda: self.said.append("ended"))

    def begin(self, operation: str, calls: list[Any], expansion: int, *, patience: float) -> Any:
        self.asked = [operation, calls, expansion]
        self.patience = patience
        if self._begin is not None:
            raise self._begin
        return self

    def pump(self) -> None:
        """One outcome at a time, as from a process that is slower than the judge."""
        if self._coming:
            self.outcomes.append(self._coming.pop(0))
        elif self._die is not None:
            raise self._die

    def complete(self) -> None:
        while self._coming:
            self.pump()
        if self._die is not None:
            raise self._die

    def finish(self, run: Any) -> None:
        assert run is self
        self.said.append("finished")

    def printed(self, limit: int) -> str:
        return f"printed, {limit} characters at most"


def played(
    subcases: Sequence[Subcase],
    outcomes: Sequence[Outcome] | Played,
    references: tuple[Reference, ...] | None = None,
    *,
    shelf: Shelf = DOUBLE,
    without: Sequence[str] = (),
    keep: Any = None,
    diagnosed: bool = False,
    parameters: tuple[str, ...] = ("x",),
    **fields: Any,
) -> Record:
    """What the judge says of a case whose calls come to these outcomes, those of the second round behind the first."""
    made = outcomes if isinstance(outcomes, Played) else Played(outcomes)
    asked = (shelf.reference("right"),) if references is None else references
    contract = Contract("double", "", parameters, ("float32",), asked, fields.pop("rules", ()), **fields)
    kind = Kind("double", "own/kind", "Because.", ("found",), ("float32",), lambda draw, dtype: list(subcases))
    case = Case.make("double", "float32", "own/kind", {"seed": 0})
    return judge(
        *(case, made),  # type: ignore[arg-type]
        contract=contract,
        kind=kind,
        oracles=shelf,
        without=without,
        keep=keep,
        diagnosed=diagnosed,
    )


def died(verdict: Verdict = Verdict.CRASHED, message: str = "The process ended with signal 11") -> Death:
    """A process that is gone."""
    return Death(verdict, message)
