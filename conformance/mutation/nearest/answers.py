"""Wrong rules that arrive at the right answer and give another in some places."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mlx_assay.conformance.mutation.nearest.readings import NEAR, largest
from mlx_assay.conformance.mutation.nearest.trial import Trial, Wrong
from mlx_assay.fixtures.draw import Draw
from mlx_assay.oracles.rounding import denormal


def _rows(array: np.ndarray, per_row: bool) -> np.ndarray:
    """[rows, ...]: one answer a row, or one row of answers."""
    return array.reshape(-1, array.shape[-1]) if per_row else array.reshape(-1)


def first_row(per_row: bool) -> Wrong:
    """The first row's answer for all; `per_row` where an answer is as wide as a row."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        if trial.right.ndim > per_row and trial.right.size:
            rows = _rows(trial.right, per_row)
            yield np.broadcast_to(rows[:1], rows.shape).reshape(trial.right.shape)

    return Wrong("the first row's answer for all", make)


def row_before(per_row: bool) -> Wrong:
    """Each row's answer for the next row."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        if trial.right.ndim > per_row and trial.right.size:
            yield np.roll(_rows(trial.right, per_row), 1, axis=0).reshape(trial.right.shape)

    return Wrong("the answer of the row before", make)


def unwritten(name: str, places: Callable[[np.ndarray], np.ndarray | slice]) -> Wrong:
    """Zeros at some places of the flattened answer's last axis."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        if trial.right.size:
            made = trial.right.reshape(-1, trial.right.shape[-1] if trial.right.ndim else 1).copy()
            made[:, places(made)] = 0
            yield made.reshape(trial.right.shape)

    return Wrong(name, make)


LAST_UNWRITTEN = unwritten("the last element of each row left unwritten", lambda rows: slice(-1, None))
FAR_UNWRITTEN = unwritten(f"what lies past {NEAR:,} elements left unwritten", lambda rows: slice(NEAR, None))


def _zeros_negated(trial: Trial) -> Iterator[np.ndarray]:
    right = trial.right
    yield np.where(right == 0, np.negative(right), right)


def _saturated(trial: Trial) -> Iterator[np.ndarray]:
    yield np.where(np.isinf(trial.right), largest(trial.right).astype(trial.right.dtype), trial.right)


SATURATED = Wrong("answers that stop at the largest finite number", _saturated)
OTHER_ZERO = Wrong("zeros of the other sign", _zeros_negated)


def _denormals_flushed(trial: Trial) -> Iterator[np.ndarray]:
    yield np.where(denormal(trial.right), np.zeros_like(trial.right), trial.right)


DENORMALS_LOST = Wrong("denormal answers that are zero", _denormals_flushed)


def off_by_one(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """A copy whose encodings at some places are the neighbours: the last bit is another."""
    made = np.array(values, order="C")
    bits = made.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[made.dtype.itemsize])
    bits[places] ^= 1
    return made


def one_value(argument: str, range_of: Callable[[np.ndarray], tuple[int, int]], turn: int) -> Wrong:
    """The rule that is off by an encoding wherever an argument has one value of its whole range, drawn from the id.

    `range_of(array)` are the least encoding and the one past the largest; the answer is as large as the argument.
    """

    def make(trial: Trial) -> Iterator[np.ndarray]:
        array = trial.plain[argument]
        bits = array.view({2: np.uint16, 4: np.int32}[array.dtype.itemsize])
        yield off_by_one(trial.right, bits == drawn(trial, *range_of(array), turn))

    return Wrong(f"one value of the whole range taken for its neighbour, {turn}", make)


def drawn(trial: Trial, low: int, high: int, turn: int) -> int:
    """A number in [low, high) that depends on the case's id alone; another for each turn."""
    return int(Draw(trial.case.digest).integers(low, high, (turn + 1,))[turn])
