"""Wrong rules of an argmax of normalised logits, beside those that its diagnosis suspects."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from mlx_assay.conformance.mutation.nearest.answers import drawn
from mlx_assay.conformance.mutation.nearest.trial import Trial, Wrong
from mlx_assay.oracles.registry import load

FLOAT32 = np.dtype(np.float32)


def scores(trial: Trial) -> np.ndarray:
    """float32 [..., V]: as they are to be compared."""
    values = load("numpy_reference").scores(trial.prepared["logits"], trial.prepared["lse"])
    return np.asarray(values.astype(FLOAT32))


def first(values: np.ndarray) -> np.ndarray:
    """uint32 [...]: the first of the largest; the first NaN, where there is one."""
    return np.asarray(np.argmax(values, -1), np.uint32)


def _finite_alone(trial: Trial) -> Iterator[np.ndarray]:
    values = scores(trial)
    yield first(np.where(np.isfinite(values), values, -np.inf))


def _infinite_nan(trial: Trial) -> Iterator[np.ndarray]:
    values = scores(trial)
    if np.isneginf(values).any():
        yield first(np.where(np.isneginf(values), np.nan, values))


def _infinite_zero(trial: Trial) -> Iterator[np.ndarray]:
    logits = trial.plain["logits"]
    if np.isneginf(logits.astype(FLOAT32)).any():
        yield trial.answer(logits=np.where(np.isneginf(logits.astype(FLOAT32)), logits.dtype.type(0), logits))


def _idle(trial: Trial) -> Iterator[np.ndarray]:
    """A maximum that starts below every number but with no id, and takes what is greater alone."""
    values = scores(trial)
    nothing = ~(values > -np.inf).any(-1)
    yield np.where(nothing, np.uint32(values.shape[-1]), trial.right).astype(np.uint32)


def _started(trial: Trial, values: np.ndarray, start: float) -> np.ndarray:
    """The last id of a row in which nothing is above what a maximum starts at."""
    beaten = (values > start).any(-1) | np.isnan(values).any(-1)
    return np.asarray(np.where(beaten, trial.right, np.uint32(values.shape[-1] - 1)), np.uint32)


def _start_lowest(trial: Trial) -> Iterator[np.ndarray]:
    """The lowest finite number as the start, of the scores or of the logits."""
    lowest = float(ml_dtypes.finfo(trial.prepared["lse"].dtype).min)
    yield _started(trial, scores(trial), lowest)
    yield _started(trial, trial.plain["logits"].astype(FLOAT32), lowest)


def _start_zero(trial: Trial) -> Iterator[np.ndarray]:
    yield _started(trial, scores(trial), 0.0)


def _raw(trial: Trial) -> Iterator[np.ndarray]:
    """Integers as they are, and read with the other signedness."""
    logits = trial.plain["logits"]
    if logits.dtype.kind in "iu":
        yield first(logits)


def _other_sign(trial: Trial) -> Iterator[np.ndarray]:
    logits = trial.plain["logits"]
    if logits.dtype.kind in "iu":
        other = {"i": "u", "u": "i"}[logits.dtype.kind]
        yield first(logits.view(f"{other}{logits.dtype.itemsize}").astype(FLOAT32))


def _floating(trial: Trial) -> Iterator[np.ndarray]:
    """Integers read as floating point of their width."""
    logits = trial.plain["logits"]
    if logits.dtype.kind in "iu":
        wanted = {4: FLOAT32, 1: np.dtype(ml_dtypes.float8_e4m3fn)}[logits.dtype.itemsize]
        yield trial.answer(logits=logits.view(wanted).astype(FLOAT32))


def _added(trial: Trial) -> Iterator[np.ndarray]:
    yield first(trial.plain["logits"].astype(FLOAT32) + trial.prepared["lse"].astype(FLOAT32))


def _halved(trial: Trial) -> Iterator[np.ndarray]:
    lse = trial.prepared["lse"].astype(np.float16).astype(FLOAT32)
    yield first(trial.plain["logits"].astype(FLOAT32) - lse)


def equal_neighbours(turn: int) -> Wrong:
    """The rule that takes one drawn number for the next larger one."""

    def make(trial: Trial) -> Iterator[np.ndarray]:
        logits = trial.plain["logits"]
        values = np.unique(logits.reshape(-1))
        below = drawn(trial, 0, len(values) - 1, turn)
        yield trial.answer(logits=np.where(logits == values[below], values[below + 1], logits))

    return Wrong(f"a drawn number taken for the next larger one, {turn}", make)


FINITE_ALONE = Wrong("infinite and NaN scores passed over", _finite_alone)
INFINITE_NAN = Wrong("scores of -inf taken for NaN", _infinite_nan)
INFINITE_ZERO = Wrong("logits of -inf taken for zero", _infinite_zero)
IDLE = Wrong("no id where nothing exceeds -inf", _idle)
START = Wrong("a maximum that starts at the lowest finite number", _start_lowest)
START_ZERO = Wrong("a maximum that starts at zero", _start_zero)
RAW = Wrong("integers compared as they are", _raw)
OTHER_SIGN = Wrong("integers of the other signedness", _other_sign)
FLOATING = Wrong("integers read as floating point", _floating)
ADDED = Wrong("a normaliser that is added", _added)
HALVED = Wrong("a normaliser cut to float16", _halved)
