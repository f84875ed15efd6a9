"""The oracles of one contract on this machine: asked together, and held against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, Reference, always
from mlx_assay.conformance.judging.compare import Comparison, compare
from mlx_assay.conformance.stopwatch import stage
from mlx_assay.conformance.verdict import Verdict

Applies = Callable[[Arguments], bool]
Loader = Callable[[str], Any]
"""From an oracle's name to its module."""


class Disagreement(Exception):
    """Oracles that cannot be relied on: one is broken, or two differ."""


@dataclass(frozen=True)
class Expected:
    """What one oracle says of one subcase. `ulps` is the allowed distance where the rung is within-ulp."""

    reference: Reference
    output: np.ndarray
    ulps: int | np.ndarray | None

    def compare(self, got: np.ndarray, relaxations: Sequence[str]) -> Comparison:
        """Holds an output of the same dtype and shape against it."""
        return compare(got, self.output, relaxations, self.ulps)

    def reached(self, comparison: Comparison) -> bool:
        """Whether the rung that the reference states was reached."""
        return comparison.rung.reaches(self.reference.conforms)


@dataclass(frozen=True)
class Standing:
    """What is known of an oracle before it is asked: its version, or why it is missing, or what its self-test found."""

    name: str
    version: str = ""
    missing: str = ""
    fault: str = ""


@cache
def standing(name: str, loader: Loader) -> Standing:
    """Loads an oracle and tests it, once a process."""
    try:
        module = loader(name)
        version = module.version()
    except ImportError as error:
        return Standing(name.replace("_", "-"), missing=str(error))
    try:
        with stage("self-tests", "self-tests"), np.errstate(all="ignore"):
            module.self_test()
    except Exception as error:
        return Standing(module.NAME, version, fault=f"{type(error).__name__}: {error}")
    return Standing(module.NAME, version)


class Panel:
    """Asks every reference of a contract that is there and applies.

    `relaxations` hold between oracles as they do for implementations; `without` are oracles that a run leaves out.
    Raises Disagreement where a self-test failed.
    """

    def __init__(
        self, contract: Contract, loader: Loader, relaxations: Sequence[str], without: Sequence[str] = ()
    ) -> None:
        self._contract = contract
        self._relaxations = relaxations
        asked = [reference for reference in contract.references if reference.oracle.replace("_", "-") not in without]
        found = [(reference, standing(reference.oracle, loader)) for reference in asked]
        self.references = [reference for reference, known in found if not known.missing]
        self.names = list(dict.fromkeys(known.name for _, known in found if not known.missing))
        self.missing = list(dict.fromkeys(known.name for _, known in found if known.missing))
        self._standings = {reference.oracle: known for reference, known in found}

    def fault(self) -> str:
        """What a self-test found, naming the oracle; empty where all are sound."""
        for known in self._standings.values():
            if known.fault:
                return f"The self-test of oracle {known.name} {known.version} failed: {known.fault}"
        return ""

    def title(self, reference: Reference) -> str:
        """An oracle's name and version."""
        known = self._standings[reference.oracle]
        return f"{known.name} {known.version}".strip()

    def expect(self, arguments: Arguments) -> list[Expected]:
        """The expected outputs, the primary one first; none where those that apply cannot judge alone.

        Raises Disagreement.
        """
        with np.errstate(all="ignore"):
            try:
                with stage("preparation", "preparation"):
                    prepared = self._contract.prepare(arguments)
            except Exception as error:
                raise Disagreement(f"Preparing the oracles failed: {type(error).__name__}: {error}") from error
            answers: dict[Applies, bool] = {}
            expected = [
                self._ask(reference, prepared)
                for reference in self.references
                if self._asks(reference, prepared, answers)
            ]
            with stage("comparison"):
                for other in expected[1:]:
                    self._hold(expected[0], other)
        return expected if any(one.reference.alone for one in expected) else []

    def _asks(self, reference: Reference, arguments: Arguments, answers: dict[Applies, bool]) -> bool:
        """Whether an oracle has an opinion; references with the same condition ask it once."""
        condition = reference.applies
        if condition is always:
            return True
        if (known := answers.get(condition)) is None:
            with self._stage(reference):
                known = answers[condition] = condition(arguments)
        return known

    def _stage(self, reference: Reference) -> AbstractContextManager[None]:
        name = f"oracle {self._standings[reference.oracle].name}"
        return stage(name, name)

    def _ask(self, reference: Reference, arguments: Arguments) -> Expected:
        try:
            with self._stage(reference):
                output = np.asarray(reference.compute(arguments), order="C")
                ulps = reference.ulps(arguments, output) if reference.ulps and _by_distance(reference) else None
        except Exception as error:
            raise Disagreement(f"Oracle {self.title(reference)} raised {type(error).__name__}: {error}") from error
        return Expected(reference, output, ulps)

    def _hold(self, primary: Expected, other: Expected) -> None:
        names = f"{self.title(primary.reference)} and {self.title(other.reference)}"
        if primary.output.dtype != other.output.dtype or primary.output.shape != other.output.shape:
            raise Disagreement(
                f"Oracles {names} disagree: {primary.output.dtype}{list(primary.output.shape)} against "
                f"{other.output.dtype}{list(other.output.shape)}"
            )
        comparison = other.compare(primary.output, self._relaxations)
        if not other.reached(comparison):
            place = comparison.places[0]
            raise Disagreement(
                f"Oracles {names} disagree at {place.index}: {place.got} against {place.want} "
                f"({comparison.count} of {comparison.total} places, {other.reference.conforms} needed)"
            )


def _by_distance(reference: Reference) -> bool:
    return reference.conforms is Verdict.WITHIN_ULP
