"""Wrong rules of a softcap, beside those that its diagnosis suspects."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.mutation.nearest.trial import Trial, Wrong
from mlx_assay.oracles.registry import load

FLOAT32 = np.dtype(np.float32)


def neighbours(cap: float, dtype: np.dtype[Any]) -> Iterator[float]:
    """The next caps of a dtype on both sides; of NaN and the infinities the largest number."""
    rounded = float(load("numpy_reference").scalar(cap, dtype).astype(FLOAT32))
    if not math.isfinite(rounded):
        yield float(ml_dtypes.finfo(dtype).max)
        return
    for end in (-np.inf, np.inf):
        yield float(np.nextafter(np.asarray(rounded, dtype), np.asarray(end, dtype)).astype(FLOAT32))


def _neighbour(trial: Trial) -> Iterator[np.ndarray]:
    for cap in neighbours(float(trial.plain["cap"]), trial.plain["x"].dtype):
        yield trial.answer(cap=cap)


def _kept(trial: Trial) -> Iterator[np.ndarray]:
    """The cap in float32, where x's dtype rounds it."""
    x = trial.plain["x"]
    wide = trial.answer(x=x.astype(FLOAT32))
    yield np.asarray(wide.astype(x.dtype))


def _at_once(trial: Trial) -> Iterator[np.ndarray]:
    """The cap rounded from a double to x's dtype at once, not by way of float32."""
    cap, dtype = float(trial.plain["cap"]), trial.plain["x"].dtype
    if dtype == FLOAT32:
        return
    reference = load("numpy_reference")
    twice = float(reference.scalar(cap, dtype).astype(FLOAT32))
    for near in (twice, *neighbours(twice, dtype)):
        if abs(near - cap) < abs(twice - cap):
            yield trial.answer(cap=near)


def _signless(trial: Trial) -> Iterator[np.ndarray]:
    yield np.asarray(
        np.copysign(trial.right.astype(FLOAT32), -trial.plain["x"].astype(FLOAT32)).astype(trial.right.dtype)
    )


def _flushed_cap(trial: Trial) -> Iterator[np.ndarray]:
    yield trial.answer(cap=0.0)


def _uncapped(trial: Trial) -> Iterator[np.ndarray]:
    yield trial.plain["x"]


NEIGHBOUR = Wrong("the next cap of x's dtype", _neighbour)
KEPT = Wrong("a cap that is not rounded to x's dtype", _kept)
AT_ONCE = Wrong("a cap rounded once", _at_once)
SIGNLESS = Wrong("a cap whose sign is dropped once", _signless)
UNCAPPED = Wrong("x as it is", _uncapped)
FLUSHED_CAP = Wrong("a cap that is flushed to zero", _flushed_cap)
