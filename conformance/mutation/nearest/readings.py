"""Wrong rules that read an argument wrongly, and do everything else as they should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.mutation.nearest.trial import Trial, Wrong
from mlx_assay.fixtures.tensor import Tensor
from mlx_assay.oracles.rounding import denormal

FLOAT32 = np.dtype(np.float32)
NEAR = 16_384
"""What a kernel does at once that knows small vocabularies alone: less than the smallest of a model in use."""


def _tensors(trial: Trial) -> Iterator[tuple[str, Tensor]]:
    for name, argument in trial.subcase.arguments.items():
        if isinstance(argument, Tensor):
            yield name, argument


def _contiguous(trial: Trial) -> Iterator[np.ndarray]:
    read = {}
    for name, tensor in _tensors(trial):
        if tensor.steps:
            shape = tensor.array.shape
            size = int(np.prod(shape, dtype=np.int64))
            flat = np.zeros(size, tensor.base.dtype)
            flat[: tensor.base.size] = tensor.base.reshape(-1)[:size]
            read[name] = flat.reshape(shape)
    if read:
        yield trial.answer(**read)


def replaced(name: str, where: Callable[[np.ndarray], np.ndarray], value: Callable[[np.ndarray], Any]) -> Wrong:
    """The rule that takes some numbers of every array of floats for others."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        read = {}
        for key, tensor in _tensors(trial):
            array = tensor.array
            if array.dtype.kind not in "iu" and where(array).any():
                read[key] = np.where(where(array), np.asarray(value(array), array.dtype), array)
        if read:
            yield trial.answer(**read)

    return Wrong(name, make)


def largest(array: np.ndarray) -> np.ndarray:
    """The largest finite number of a dtype with each element's sign."""
    return np.asarray(np.copysign(np.float32(ml_dtypes.finfo(array.dtype).max), array.astype(FLOAT32)))


def _last_binade(array: np.ndarray) -> np.ndarray:
    wide = np.abs(array.astype(np.float64))
    found: np.ndarray = np.isfinite(wide) & (wide >= np.abs(largest(array)).astype(np.float64) / 2)
    return found


def _stale_form(trial: Trial) -> Iterator[np.ndarray]:
    name = next(name for name, _ in _tensors(trial))
    mine, old = trial.plain[name], trial.before[name]
    if mine.shape != old.shape or mine.dtype != old.dtype:
        yield np.zeros(old.shape, old.dtype)


STALE_FORM = Wrong("shape and dtype of the call before", _stale_form)
CONTIGUOUS = Wrong("arrays read from their buffer's start, row by row", _contiguous)
NAN_ZERO = replaced("NaN taken for zero", np.isnan, np.zeros_like)
INFINITE_ZERO = replaced("an infinity taken for zero", np.isinf, np.zeros_like)
INFINITE_LARGEST = replaced("an infinity taken for the largest finite number", np.isinf, largest)
LARGEST_INFINITE = replaced(
    "numbers of the last binade that overflow", _last_binade, lambda array: np.copysign(np.float32(np.inf), array)
)
LARGEST_ZERO = replaced("numbers of the last binade taken for zero", _last_binade, np.zeros_like)
FLUSHED = replaced(
    "denormals taken for zeros of their sign", denormal, lambda array: np.copysign(np.float32(0), array.astype(FLOAT32))
)


def stale(argument: str) -> Wrong:
    """The rule that takes an argument of the call before, where an array has the same shape and dtype."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        mine, old = trial.plain[argument], trial.before[argument]
        fits = not isinstance(mine, np.ndarray) or (mine.shape == old.shape and mine.dtype == old.dtype)
        if fits:
            yield trial.answer(**{argument: old})

    return Wrong(f"the {argument} of the call before", make)


def cut(name: str, argument: str, keep: Callable[[np.ndarray], int | None], fill: float | None = None) -> Wrong:
    """The rule that reads so many elements of an argument's last axis; `fill` stands in place of the others.

    None for `keep` means that there is nothing to leave out; without `fill` the axis is that short.
    """

    def make(trial: Trial) -> Iterator[np.ndarray]:
        array = trial.plain[argument]
        count = keep(array)
        if count is None:
            return
        if fill is None:
            yield trial.answer(**{argument: np.ascontiguousarray(array[..., :count])})
        else:
            shorter = array.copy()
            shorter[..., count:] = fill
            yield trial.answer(**{argument: shorter})

    return Wrong(name, make)


def but_last(array: np.ndarray) -> int | None:
    """All but the last element; None where that leaves none."""
    return array.shape[-1] - 1 if array.ndim and array.shape[-1] > 1 else None


def but_tail(array: np.ndarray) -> int | None:
    """Whole groups of 32; None where nothing or all is left out."""
    whole = array.shape[-1] // 32 * 32 if array.ndim else 0
    return whole if 0 < whole < array.shape[-1] else None


def but_half(array: np.ndarray) -> int | None:
    """The first half; None where that is nothing."""
    return array.shape[-1] // 2 or None if array.ndim else None


def but_far(array: np.ndarray) -> int | None:
    """The first of a large vocabulary; None where there are no more."""
    return NEAR if array.ndim and array.shape[-1] > NEAR else None
