"""The sweep of argmax_given's scores: every pair of a logit and an lse in bfloat16, beside the logit's neighbours.

An id tells of scores only how they compare, so that a wrong score can be seen only by its order with others. Scores
rise with the logit, so that how each compares with the next one's decides the order of all. One row a pair is enough:
the logit after a lower neighbour whose score is less, or before one whose score is the same; and behind both the higher
neighbour, if its score is the same. The id is then the logit's own, and says all of that. A device may take denormals
for zero (rule 7 of the contract): a neighbour whose score is the logit's in one reading alone is left out.
"""

from __future__ import annotations

import numpy as np

from mlx_assay.conformance.contracts.normalized_argmax import flushed
from mlx_assay.conformance.sweeping.sweep import Sweep
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.tensor import DTYPES, Tensor

BFLOAT16 = DTYPES["bfloat16"]
ENCODINGS = 1 << 16
PARTS = 4
"""Blocks of one lse, so that a call takes seconds where each row is a threadgroup on a CPU."""

SIZE = ENCODINGS // PARTS
WHY = "Hunts a score that is rounded wrongly for one pair of logit and lse: each logit is asked beside its neighbours."


def ranked() -> np.ndarray:
    """uint16 [2^16]: every encoding in the order of values, -0 before +0, NaN outermost."""
    words = np.arange(ENCODINGS, dtype=np.uint16)
    return np.concatenate([words[:0x7FFF:-1], words[:0x8000]])


def pairs(block: int) -> Subcase:
    """logits [2^14, 3] and lse [2^14, 1]: of one lse a quarter of all logits, each beside its neighbours."""
    lse, part = divmod(block, PARTS)
    place, order = part * SIZE + np.arange(SIZE), ranked()
    lower, own, higher = (order[(place + step) % ENCODINGS] for step in (-1, 0, 1))
    given = np.full((SIZE, 1), lse, np.uint16).view(BFLOAT16)
    lower, tied = _neighbour(lower, own, given[:, 0])
    higher, tied_above = _neighbour(higher, own, given[:, 0])
    rows = np.stack(
        [np.where(tied, own, lower), np.where(tied, lower, own), np.where(tied_above, higher, lower)], axis=-1
    )
    return Subcase(f"lse-0x{lse:04x}-part-{part}", {"logits": Tensor(rows.view(BFLOAT16)), "lse": Tensor(given)})


def _neighbour(words: np.ndarray, own: np.ndarray, lse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The neighbours, each its logit itself where only a denormal sets the scores apart; and whose scores are tied."""
    kept = _scores(words, lse) == _scores(own, lse)
    read = _flushed_scores(words, lse) == _flushed_scores(own, lse)
    return np.where(kept == read, words, own), kept | read


def _scores(words: np.ndarray, lse: np.ndarray) -> np.ndarray:
    """By which rows are laid out; what is right for a row is the oracles' matter."""
    with np.errstate(all="ignore"):
        rounded = (words.view(BFLOAT16).astype(np.float32) - lse.astype(np.float32)).astype(BFLOAT16)
    return np.asarray(rounded.astype(np.float32))


def _flushed_scores(words: np.ndarray, lse: np.ndarray) -> np.ndarray:
    return flushed(_scores(flushed(words.view(BFLOAT16)).view(np.uint16), flushed(lse)))


def told(subcase: Subcase, index: tuple[int, ...]) -> str:
    """The logits of a row, and the lse."""
    logits, lse = (subcase.arguments[name] for name in ("logits", "lse"))
    assert isinstance(logits, Tensor)
    assert isinstance(lse, Tensor)
    row = " ".join(f"0x{word:04x}" for word in logits.base.view(np.uint16)[index[0]])
    return f"logits {row}, lse 0x{lse.base.view(np.uint16)[index[0], 0]:04x}"


SWEEPS = [
    Sweep(
        Case.make("argmax_given", "bfloat16", "every/pair", {}),
        WHY,
        ENCODINGS * PARTS,
        SIZE,
        pairs,
        told,
        step=PARTS,
    )
]
