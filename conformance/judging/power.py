"""Power: whether a case tells an implementation from one that does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlx_assay.conformance.judging.compare import compare
from mlx_assay.conformance.judging.panel import Disagreement, Expected
from mlx_assay.fixtures.case import Subcase
from mlx_assay.fixtures.tensor import Tensor

PREFIX = 1024
"""Elements that are compared before the whole."""

Expectations = Sequence[list[Expected] | Disagreement]
Twin = Callable[[int, Sequence[Subcase], Sequence[list[Expected]]], np.ndarray | None]
"""What an implementation without work in it would give for a subcase; None where it could not."""


def zeros(index: int, subcases: Sequence[Subcase], expected: Sequence[list[Expected]]) -> np.ndarray | None:
    """Zeros of the right shape."""
    return np.zeros_like(expected[index][0].output)


def first_input(index: int, subcases: Sequence[Subcase], expected: Sequence[list[Expected]]) -> np.ndarray | None:
    """The first array that was passed."""
    return next((value.array for value in subcases[index].arguments.values() if isinstance(value, Tensor)), None)


def previous_output(index: int, subcases: Sequence[Subcase], expected: Sequence[list[Expected]]) -> np.ndarray | None:
    """What the call before was right to give; calls go round, so the last comes before the first."""
    return expected[index - 1][0].output


TWINS: dict[str, Twin] = {
    "an output of zeros": zeros,
    "the input itself": first_input,
    "the output of the previous call": previous_output,
}


def powerless_twin(subcases: Sequence[Subcase], expectations: Expectations, relaxations: Sequence[str]) -> str | None:
    """The twin that would conform to every subcase, or None.

    A case in which a subcase expects an exception has power: a twin does not raise. One whose oracles disagree has
    no expectation to be measured by.
    """
    expected = [entry for entry in expectations if not isinstance(entry, Disagreement) and entry]
    if len(expected) < len(subcases):
        return None
    for name, twin in TWINS.items():
        if all(
            _conforms(twin(index, subcases, expected), expected[index], relaxations) for index in range(len(subcases))
        ):
            return name
    return None


def _conforms(got: np.ndarray | None, expected: list[Expected], relaxations: Sequence[str]) -> bool:
    """A prefix that does not conform settles it, so that large outputs cost little."""
    want = expected[0].output
    if got is None or got.dtype != want.dtype or got.shape != want.shape:
        return False
    return all(_reached(entry, got, relaxations, PREFIX) for entry in expected) and all(
        _reached(entry, got, relaxations, want.size) for entry in expected
    )


def _reached(entry: Expected, got: np.ndarray, relaxations: Sequence[str], count: int) -> bool:
    ulps = entry.ulps
    if isinstance(ulps, np.ndarray):
        ulps = np.broadcast_to(ulps, got.shape).reshape(-1)[:count]
    comparison = compare(got.reshape(-1)[:count], entry.output.reshape(-1)[:count], relaxations, ulps)
    return entry.reached(comparison)
