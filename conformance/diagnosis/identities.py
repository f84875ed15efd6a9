"""What wrong ids have in common with the right ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.diagnosis.claim import Claim
from mlx_assay.conformance.diagnosis.evidence import PLAIN_IDS, Evidence, distinct

BLOCKS = tuple(1 << power for power in range(5, 13))
"""Tiles within which an id may have been counted."""
FEW = 3
WIDTHS = (8, 16, 24)
"""Bits to which an id may have been cut."""


def identities(evidence: Evidence) -> Iterator[Claim]:
    """Claims on unsigned and signed whole numbers."""
    if evidence.want.dtype.kind not in "ui":
        return
    got, want = (array.astype(np.int64) for array in (evidence.came, evidence.expected))
    apart = got - want
    for step, text in ((1, "the next id"), (-1, "the id before")):
        if evidence.count >= FEW or (want >= PLAIN_IDS).any():
            yield Claim("off-by-one", f"off by one: {text}", apart == step)
    step = int(apart[0])
    if evidence.count >= FEW and abs(step) > 1 and distinct(want).size >= FEW and (apart == step).all():
        text = f"{abs(step)} {'more' if step > 0 else 'less'} than the right id"
        yield Claim("offset", text, apart == step)
    for bits in WIDTHS:
        if (want >> bits).any():
            yield Claim("modulo", f"cut to {bits} bits: the id modulo 2^{bits}", (got == want & ((1 << bits) - 1)))
    for block in reversed(BLOCKS):
        lost = (got == want % block) & (want >= block)
        if lost.any() and block.bit_length() - 1 not in WIDTHS:
            yield Claim("tile-lost", f"the offset of the tile is lost: the id modulo {block}", lost)
    vocabulary = _vocabulary(evidence)
    if vocabulary and (got >= vocabulary).any():
        yield Claim("out-of-range", f"ids out of range: {vocabulary} and above", got >= vocabulary)


def _vocabulary(evidence: Evidence) -> int:
    """The last extent of an argument of one axis more, along which ids are counted."""
    for value in evidence.arguments.values():
        if isinstance(value, np.ndarray) and value.ndim == evidence.want.ndim + 1:
            return int(value.shape[-1])
    return 0
