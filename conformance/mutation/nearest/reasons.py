"""Cases that fail none of a group of nearest wrong rules, and what they are there for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Reason(NamedTuple):
    """Why some cases of a kind, or all, fail none of what is nearest to a tag, or to the kind itself under ""."""

    text: str
    all: bool = False


_ARGMAX = ("normalized_argmax", "argmax_given")
_SOFTCAPS = ("logit_softcap", "compiled_logit_softcap")
_PLAIN = Reason("The plain layout stands beside the others, with the same values, for comparison.")
_DRAWN = Reason(
    "Drawn as models give them: in some of the draws the scores that are equal once rounded are not the best ones."
)
_ONE_ROW = Reason("One row alone has no other: it stands beside batches of the same vocabulary.")

REASONS: Mapping[tuple[str, str, str], Reason] = {
    **{(operation, "ties", "near-ties/normal"): _DRAWN for operation in _ARGMAX},
    ("normalized_argmax", "ties", "real/tied"): _DRAWN,
    ("argmax_given", "ties", "real/rows"): _DRAWN,
    **{(operation, "batch", "shape/rows"): _ONE_ROW for operation in _ARGMAX},
    ("apply_token_bitmask", "batch", "shape/large-vocabulary"): _ONE_ROW,
    **{
        (operation, "denormal", "denormal/neighbours"): Reason(
            "Denormals beside a larger number, which wins with them flushed too: it hunts a winner that they disturb.",
            all=True,
        )
        for operation in _ARGMAX
    },
    ("argmax_given", "exhaustive", "exhaustive/neighbours"): Reason(
        "Of each window its two largest decide: one pair of 63 is told apart, and every pair by the sweep of pairs.",
        all=True,
    ),
    ("apply_token_bitmask", "strided", "bits/container"): _PLAIN,
    ("apply_token_bitmask", "strided", "view/logits"): _PLAIN,
    **{(operation, "strided", "view/named"): _PLAIN for operation in _SOFTCAPS},
    **{
        (operation, "signed-zero", "sweep/zero"): Reason(
            "Every small number of one sign: it hunts a polynomial that gives way near zero."
        )
        for operation in _SOFTCAPS
    },
    ("trellis_decode", "", "shape/pairs"): Reason(
        "One row of interleaved codes lies in storage as it does row by row: it stands beside several."
    ),
}
"""By operation, tag and kind."""
