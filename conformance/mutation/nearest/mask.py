"""Wrong rules of a token mask, beside those that its diagnosis suspects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.mutation.nearest.trial import Trial, Wrong
from mlx_assay.oracles.registry import load


def _dead_end(trial: Trial) -> Iterator[np.ndarray]:
    """Where no id is allowed, all are."""
    logits = trial.plain["logits"]
    if not load("numpy_reference").allowed(trial.plain["bits"], logits.shape[-1]).any():
        yield trial.answer(bits=np.full(-(-logits.shape[-1] // 32), -1, np.int32))


def _past(trial: Trial) -> Iterator[np.ndarray]:
    """-inf one place past a row, where a bit stands for it and is clear."""
    vocabulary = trial.plain["logits"].shape[-1]
    words = trial.plain["bits"].reshape(-1).view(np.uint32)
    rows = trial.right.reshape(-1, vocabulary).copy()
    if vocabulary % 32 and len(rows) > 1 and not words[vocabulary // 32] >> np.uint32(vocabulary % 32) & 1:
        rows[1:, 0] = -np.inf
        yield rows.reshape(trial.right.shape)


def _words(trial: Trial) -> tuple[np.ndarray, int]:
    """The mask's words, and how many the vocabulary needs."""
    return trial.plain["bits"].reshape(-1), -(-trial.plain["logits"].shape[-1] // 32)


def _last_words(trial: Trial) -> Iterator[np.ndarray]:
    words, count = _words(trial)
    if len(words) > count:
        yield trial.answer(bits=np.ascontiguousarray(words[-count:]))


def _filled(trial: Trial) -> Iterator[np.ndarray]:
    words, count = _words(trial)
    old = trial.before["bits"].reshape(-1)
    if len(words) < min(count, len(old)):
        yield trial.answer(bits=np.concatenate([words, old[len(words) :]]))


def _padding(trial: Trial) -> Iterator[np.ndarray]:
    """Ids past the tokens that a mask is made for, allowed."""
    words, count = _words(trial)
    tokens = dict(trial.case.parameters).get("tokens")
    if tokens is not None:
        opened = np.zeros(count, np.int32)
        opened[: len(words)] = words[:count]
        flags = np.unpackbits(opened.view(np.uint8), bitorder="little")
        flags[int(tokens) :] = 1
        yield trial.answer(bits=np.packbits(flags, bitorder="little").view(np.int32))


PADDING = Wrong("ids of padding allowed", _padding)
LAST_WORDS = Wrong("the last words of a mask that is too long", _last_words)
FILLED = Wrong("missing words filled from the mask before", _filled)
DEAD_END = Wrong("a dead end left open", _dead_end)
PAST = Wrong("-inf one place past a row", _past)
