"""A contract: what one operation promises, and the oracles that hold an implementation to it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import mlx_assay.conformance.contracts
from mlx_assay.conformance.bench.benchmark import Benchmark
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.tensor import Tensor

Arguments = Mapping[str, Any]
"""Arguments of one call as oracles see them: row-contiguous NumPy arrays (ml_dtypes for bf16) and plain values.

Under EXECUTOR stands what the executor says of itself, for contracts whose bits it decides.
"""

EXECUTOR = "executor"

GRAPH_SECONDS = 10.0
"""More than NVRTC took for one of MLX's graphs beside 37 other processes on 16 cores, where it takes longest."""


@dataclass(frozen=True)
class Rule:
    """A numbered promise, where it comes from, and the releases of the reference for which it holds."""

    number: int
    text: str
    source: str
    since: str = ""
    until: str = ""


def always(arguments: Arguments) -> bool:
    """An oracle has an opinion on whatever there is."""
    return True


@dataclass(frozen=True)
class Reference:
    """One oracle's part in a contract.

    `oracle` is the name of a module of mlx_assay.oracles; `compute` calls it and returns the expected output.
    `conforms` is the lowest rung that an implementation must reach against it. For within-ulp, `ulps(arguments,
    expected)` gives the allowed distance (an int, or an int64 array of the output's shape), and `rule` names why.
    `applies` tells for which arguments the oracle has an opinion. `alone`: whether it can judge where no other
    does; one that shares an executor's runtime cannot.
    """

    oracle: str
    compute: Callable[[Arguments], np.ndarray]
    conforms: Verdict = Verdict.SAME_VALUE
    ulps: Callable[[Arguments, np.ndarray], int | np.ndarray] | None = None
    rule: str = ""
    applies: Callable[[Arguments], bool] = always
    alone: bool = True


@dataclass(frozen=True)
class Contract:
    """What one operation promises.

    `parameters` are the names of the call's arguments, in order. `prepare` adds to the arguments what several
    references share (such as the native logsumexp), once a subcase. `relaxations` are names from
    conformance/judging/relaxation.py. `explain(arguments, got, want, index)` says in a few words why a place differs.
    The first reference is the primary one: the others are held against it too. An output has at most `expansion` times
    as many elements as the largest input, or 4 KiB. `addends(arguments)` are the numbers [m, n], or their two factors,
    whose m sums the flattened output is, where it is nothing else: `mlx-assay order` asks for them.

    Two hooks help to say what wrong answers have in common. `marks(arguments)` names places, a bool array of the
    output's shape each, so that it reads "only where ...": `{"a score is NaN": ...}`. `suspects(arguments)` names
    wrong answers, each a function that makes the whole output, so that it reads "as ... would give":
    `{"the last id on ties": ...}`; what is likelier or simpler stands first. `broken(arguments)` are the numbers of the
    rules that these break, by the beginnings of their names, the longest deciding; under "" stands the rule that an
    output breaks of which nothing is known but that it is another. `benchmarks` are what `mlx-assay bench` measures.

    `graph(subcase)` tells graphs apart where references compile some that implementations compile too, which MLX keeps
    on disk by their names. They are then asked before a case's calls begin, so that the graphs are there, and not
    compiled on both sides at once.
    """

    operation: str
    summary: str
    parameters: tuple[str, ...]
    dtypes: tuple[str, ...]
    references: tuple[Reference, ...]
    rules: tuple[Rule, ...]
    relaxations: tuple[str, ...] = ("nan-any",)
    prepare: Callable[[Arguments], Arguments] = lambda arguments: arguments
    explain: Callable[[Arguments, np.ndarray, np.ndarray, tuple[int, ...]], str] = lambda *_: ""
    expansion: int = 1
    addends: Callable[[Arguments], tuple[np.ndarray, ...]] | None = None
    marks: Callable[[Arguments], Mapping[str, np.ndarray]] | None = None
    suspects: Callable[[Arguments], Mapping[str, Callable[[], np.ndarray]]] | None = None
    broken: Callable[[Arguments], Mapping[str, int]] | None = None
    benchmarks: tuple[Benchmark, ...] = ()
    graph: Callable[[Subcase], str] | None = None

    def patience(self, subcases: Sequence[Subcase]) -> float:
        """Seconds beyond the limit that a case may take, for graphs of its own that an implementation compiles."""
        return GRAPH_SECONDS * len({self.graph(subcase) for subcase in subcases}) if self.graph else 0.0


def seen(subcase: Subcase, executor: Mapping[str, Any]) -> Arguments:
    """What oracles and explanations are given of a subcase."""
    plain = {name: value.array if isinstance(value, Tensor) else value for name, value in subcase.arguments.items()}
    return {**plain, EXECUTOR: executor}


@cache
def contracts() -> Mapping[str, Contract]:
    """Every contract, by operation: the modules of mlx_assay.conformance.contracts that have a list CONTRACTS."""
    found: dict[str, Contract] = {}
    for module in pkgutil.iter_modules(mlx_assay.conformance.contracts.__path__, "mlx_assay.conformance.contracts."):
        for contract in getattr(importlib.import_module(module.name), "CONTRACTS", ()):
            if contract.operation in found:
                raise ValueError(f"Expected one contract an operation but {contract.operation!r} has two")
            found[contract.operation] = contract
    return found
