"""Ways in which an argmax of normalised logits goes wrong, and rows in which it may: for a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from mlx_assay.conformance.contract import Arguments
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal

TILES = (1024, 256, 32)
FLOAT32 = np.dtype(np.float32)
Make = Callable[[], np.ndarray]


def _wide(arguments: Arguments) -> np.ndarray:
    """float32 [..., V]: the scores as they are to be compared."""
    values: np.ndarray = load("numpy_reference").scores(arguments["logits"], arguments["lse"])
    return values.astype(FLOAT32)


def _given(arguments: Arguments, lse: np.ndarray) -> np.ndarray:
    """Ids by another normaliser, float32 [..., 1], rounded to the given one's dtype."""
    other = np.broadcast_to(lse, arguments["lse"].shape).astype(arguments["lse"].dtype)
    return _first(load("numpy_reference").scores(arguments["logits"], other).astype(FLOAT32))


def _first(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.argmax(values, -1), np.uint32)


def _last(values: np.ndarray) -> np.ndarray:
    return np.asarray(values.shape[-1] - 1 - np.argmax(values[..., ::-1], -1), np.uint32)


def _skipping(values: np.ndarray) -> np.ndarray:
    return _first(np.where(np.isnan(values), FLOAT32.type(-np.inf), values))


def _ordered(values: np.ndarray) -> np.ndarray:
    """By encodings: +0 above -0."""
    bits = values.view(np.int32)
    return _first(np.where(np.isnan(values), np.int32(2**31 - 1), np.where(bits < 0, bits ^ np.int32(2**31 - 1), bits)))


def _unrounded(arguments: Arguments) -> np.ndarray:
    wide: np.ndarray = arguments["logits"].astype(FLOAT32) - arguments["lse"].astype(FLOAT32)
    return wide


def _cut(arguments: Arguments) -> np.ndarray:
    """Scores cut to bfloat16."""
    return _first((_unrounded(arguments).view(np.uint32) & np.uint32(0xFFFF0000)).view(FLOAT32))


def _log_sum(arguments: Arguments, one_by_one: bool) -> np.ndarray:
    """[..., 1]: log(sum(exp)) in float64, or in float32 with the terms added one after the other."""
    logits = arguments["logits"].astype(FLOAT32 if one_by_one else np.float64)
    most = logits.max(-1, keepdims=True)
    terms = np.exp(logits - most)
    total = np.add.accumulate(terms, -1)[..., -1:] if one_by_one else terms.sum(-1, keepdims=True)
    sums = most + np.log(total)
    return np.asarray(np.where(np.isfinite(sums), sums, arguments["lse"].astype(sums.dtype)))


def _flushed(arguments: Arguments) -> np.ndarray:
    scores = load("numpy_reference").scores(arguments["logits"], arguments["lse"])
    return _first(np.where(denormal(scores), scores.dtype.type(0), scores).astype(FLOAT32))


def _tile(values: np.ndarray, size: int) -> np.ndarray:
    return _first(values[..., :size])


def _later(values: np.ndarray, size: int) -> np.ndarray:
    """The first id of the last tile that has the largest score."""
    tile = _last(values) // size * size
    inside = np.arange(values.shape[-1]) >= np.asarray(tile)[..., None]
    return _first(np.where(inside, values, FLOAT32.type(-np.inf)))


_BROKEN = {
    "": 3,
    "+0 above -0": 3,
    "denormals taken for zero": 7,
    "the logits alone": 2,
    "scores ": 2,
    "no score is finite": 6,
    "a score is a denormal": 7,
}
_OF_LSE = ("the largest logit as normaliser", "the first row's normaliser", "a logsumexp")
_OF_NAN = ("NaN that loses", "the first NaN", "the last NaN", "a score is NaN")


def broken(arguments: Arguments, lse: int, nan: int) -> Mapping[str, int]:
    """Rules by what breaks them; `lse` is the one on the normaliser, `nan` that on NaN of the release."""
    return {**_BROKEN, **dict.fromkeys(_OF_LSE, lse), **dict.fromkeys(_OF_NAN, nan)}


def suspects(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong ids by name, uint32 [...] each; those first whose occasion is rare, and left out where it is missing."""
    values, logits = _wide(arguments), arguments["logits"]
    found: dict[str, Make] = {}
    if np.isnan(values).any():
        found["NaN that loses to every number"] = lambda: _skipping(values)
        found["the first NaN"] = lambda: _first(values)
        found["the last NaN"] = lambda: _last(values)
    if (values == 0).any() and np.signbit(values[values == 0]).any():
        found["+0 above -0"] = lambda: _ordered(values)
    if denormal(load("numpy_reference").scores(logits, arguments["lse"])).any():
        found["denormals taken for zero"] = lambda: _flushed(arguments)
    found["the last id on ties"] = lambda: _last(values)
    for size in TILES:
        if values.shape[-1] > size:
            found[f"the later tile on ties, tiles of {size}"] = partial(_later, values, size)
    found["the logits alone, without normaliser,"] = lambda: _first(logits.astype(FLOAT32))
    if arguments["lse"].dtype != FLOAT32:
        found["scores that are not rounded before they are compared"] = lambda: _first(_unrounded(arguments))
        found["scores cut to bfloat16"] = lambda: _cut(arguments)
    found["the largest logit as normaliser"] = lambda: _given(arguments, logits.astype(FLOAT32).max(-1, keepdims=True))
    found["the first row's normaliser for all"] = lambda: _given(
        arguments, arguments["lse"].reshape(-1)[0].astype(FLOAT32)
    )
    found["a logsumexp in float64"] = lambda: _given(arguments, _log_sum(arguments, False))
    found["a logsumexp added up one by one"] = lambda: _given(arguments, _log_sum(arguments, True))
    for size in TILES:
        if values.shape[-1] > size:
            found[f"the first {size} ids alone"] = partial(_tile, values, size)
    found["the least score"] = lambda: np.asarray(np.argmin(values, -1), np.uint32)
    return found


def marks(arguments: Arguments) -> Mapping[str, np.ndarray]:
    """Rows by name, bool [...] each."""
    values, logits = _wide(arguments), arguments["logits"].astype(FLOAT32)
    best = np.fmax.reduce(values, -1, keepdims=True) if values.shape[-1] else values
    zeros = values == 0
    return {
        "a score is NaN": np.isnan(values).any(-1),
        "the best score is tied": (values == best).sum(-1) > 1,
        "the best logit is tied": (logits == logits.max(-1, keepdims=True)).sum(-1) > 1,
        "no score is finite": ~np.isfinite(values).any(-1),
        "a logit is infinite": np.isinf(logits).any(-1),
        "zeros of both signs are among the scores": (zeros & np.signbit(values)).any(-1)
        & (zeros & ~np.signbit(values)).any(-1),
        "a score is a denormal": denormal(values).any(-1),
    }
