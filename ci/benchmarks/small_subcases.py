"""Small subcases a second on one core: poisons, oracles and judge included."""

from __future__ import annotations

import time

from figure import Figure

from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import all_cases, kind_of
from mlx_assay.fixtures.tensor import Tensor

LARGEST = 4096
"""Elements of a subcase's largest argument."""


def measure() -> list[Figure]:
    """Every quick case whose subcases are all small, judged twice; the second round counts."""
    cases = [case for case in all_cases("quick") if _small(kind_of(case).subcases(case))]
    figures = []
    with Implementation() as implementation:
        _judged(cases, implementation)
        for operation in sorted({case.operation for case in cases}):
            chosen = [case for case in cases if case.operation == operation]
            subcases, seconds = _judged(chosen, implementation)
            figures.append((operation, subcases, seconds))
    subcases, seconds = sum(count for _, count, _ in figures), sum(spent for _, _, spent in figures)
    return [
        *(Figure(f"small subcases, {name}", count / spent, "subcases/s") for name, count, spent in figures),
        Figure(f"small subcases, {subcases} in all", subcases / seconds, "subcases/s", ">=", 500),
    ]


def _small(subcases: list[Subcase]) -> bool:
    sizes = [
        value.array.size for subcase in subcases for value in subcase.arguments.values() if isinstance(value, Tensor)
    ]
    return max(sizes, default=0) <= LARGEST


def _judged(cases: list[Case], implementation: Implementation) -> tuple[int, float]:
    began = time.perf_counter()
    count = sum(judge(case, implementation).subcases for case in cases)
    return count, time.perf_counter() - began
