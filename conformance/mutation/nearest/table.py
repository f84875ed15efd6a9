"""Which wrong rules are the nearest to what a tag says: in groups, of each of which a case has to fail one at least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mlx_assay.conformance.mutation.nearest import argmax, softcap, trellis
from mlx_assay.conformance.mutation.nearest.answers import (
    DENORMALS_LOST,
    FAR_UNWRITTEN,
    LAST_UNWRITTEN,
    OTHER_ZERO,
    SATURATED,
    first_row,
    one_value,
    row_before,
)
from mlx_assay.conformance.mutation.nearest.mask import DEAD_END, PAST
from mlx_assay.conformance.mutation.nearest.readings import (
    CONTIGUOUS,
    FLUSHED,
    INFINITE_LARGEST,
    INFINITE_ZERO,
    LARGEST_INFINITE,
    LARGEST_ZERO,
    NAN_ZERO,
    but_far,
    but_half,
    but_last,
    but_tail,
    cut,
    stale,
)
from mlx_assay.conformance.mutation.nearest.trial import Wrong, suspected
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.fixtures.trellis_call import DOWN, FACTORED, PAIRS, SCATTER
from mlx_assay.fixtures.trellis_matrix import DECODE, VALUES
from mlx_assay.fixtures.trellis_sums import FOLD

Groups = Sequence[Sequence[Wrong]]
RAISES = "error"
"""The tag of cases that expect an exception, which no wrong rule raises."""


def _whole(array: np.ndarray) -> tuple[int, int]:
    """Every encoding of a dtype."""
    return (0, 1 << 16) if array.dtype.itemsize == 2 else (-(1 << 31), 1 << 31)


def _each(argument: str) -> Groups:
    return tuple((one_value(argument, _whole, turn),) for turn in range(4))


_LAST_ID = suspected("the last id on ties")
_UNROUNDED = suspected("scores that are not rounded before they are compared", "scores cut to bfloat16")
_ALONE = suspected("the logits alone, without normaliser,")
_NAN = suspected("NaN that loses to every number", "the last NaN")
_TILES = suspected("the later tile on ties, tiles of 1024")
_FEW = suspected("the first 32 ids alone", "the first 256 ids alone")
_NEAR = cut("the first 16,384 ids alone", "logits", but_far)
_TAILS = (
    cut("the last id left out", "logits", but_last),
    cut("the last group of 32 ids left out", "logits", but_tail),
    cut("the later half of the ids left out", "logits", but_half),
)
_OTHER_ROW = (first_row(False), row_before(False))
_INTEGERS = (argmax.RAW, argmax.OTHER_SIGN, argmax.FLOATING)
_ARGMAX: Mapping[str, Groups] = {
    "ties": ((_LAST_ID, _UNROUNDED),),
    "nan": ((_NAN,),),
    "inf": ((argmax.FINITE_ALONE, argmax.INFINITE_NAN, argmax.INFINITE_ZERO, argmax.IDLE, _NAN),),
    "signed-zero": ((suspected("+0 above -0"), _LAST_ID, argmax.START_ZERO),),
    "denormal": ((suspected("denormals taken for zero"), _ALONE),),
    "extreme": ((argmax.START, LARGEST_INFINITE, argmax.INFINITE_NAN, *_INTEGERS),),
    "large-vocab": ((_NEAR, _TILES),),
    "batch": (_OTHER_ROW,),
    "odd-shape": ((*_TAILS, _FEW, *_OTHER_ROW, *_INTEGERS),),
    "strided": ((CONTIGUOUS,),),
    "mask": ((argmax.INFINITE_ZERO, argmax.INFINITE_NAN, argmax.IDLE),),
    "random": ((_LAST_ID, _UNROUNDED, _ALONE, _NAN, _FEW),),
    "real": ((_LAST_ID, _UNROUNDED, _ALONE, _NEAR, stale("logits")),),
    "exhaustive": tuple((argmax.equal_neighbours(turn),) for turn in range(4)),
}
_ORDER = (
    suspected("bits counted from each word's highest", "bits counted from each byte's highest"),
    suspected("each word's bytes in reverse"),
    suspected("bit 31 lost", "a word with its sign bit set allowing all its ids"),
)
_LENGTH = suspected("ids past the last word allowed")
_MASK: Mapping[str, Groups] = {
    "mask": ((*_ORDER, _LENGTH, DEAD_END),),
    "nan": ((suspected("-inf written in place of the logit, not added,"), NAN_ZERO),),
    "inf": ((suspected("a product in place of a sum"),),),
    "signed-zero": ((suspected("-inf written in place of the logit, and no 0 added,"),),),
    "denormal": ((FLUSHED,),),
    "extreme": ((suspected("the lowest finite number for -inf"), LARGEST_INFINITE, _ORDER[2]),),
    "large-vocab": ((FAR_UNWRITTEN,),),
    "batch": ((suspected("a mask of its own for each row"), first_row(True)),),
    "odd-shape": ((LAST_UNWRITTEN,),),
    "strided": ((CONTIGUOUS,),),
    "random": (_ORDER,),
    "real": ((*_ORDER, _LENGTH),),
    "exhaustive": _each("logits"),
    "found": ((PAST,),),
}
_ROUNDING = suspected("no rounding between the operations", "float64 throughout")
_RATIO = suspected("tanh by a ratio of exponentials")
_CLAMPED = suspected("a clamped tanh", "a clamp in place of tanh")
_RECIPROCAL = suspected("the reciprocal of the cap")
_SOFTCAP: Mapping[str, Groups] = {
    "cap": ((softcap.NEIGHBOUR,),),
    "nan": ((_CLAMPED, softcap.NEIGHBOUR),),
    "inf": ((_RATIO, softcap.NEIGHBOUR),),
    "signed-zero": ((suspected("+0 for -0"),),),
    "denormal": ((FLUSHED, DENORMALS_LOST, softcap.FLUSHED_CAP),),
    "extreme": ((_RATIO, _RECIPROCAL),),
    "ties": ((softcap.KEPT, softcap.AT_ONCE, _ROUNDING),),
    "large-vocab": ((FAR_UNWRITTEN,),),
    "odd-shape": ((LAST_UNWRITTEN,),),
    "strided": ((CONTIGUOUS,),),
    "random": ((_ROUNDING, _RATIO, _RECIPROCAL),),
    "real": ((_ROUNDING, _RATIO, _RECIPROCAL),),
    "exhaustive": _each("x"),
}
_SPECIAL: Mapping[str, Groups] = {
    "nan": ((NAN_ZERO,),),
    "inf": ((INFINITE_LARGEST, INFINITE_ZERO, SATURATED),),
    "signed-zero": ((OTHER_ZERO,),),
    "extreme": ((LARGEST_INFINITE, LARGEST_ZERO),),
    "denormal": ((trellis.OTHERWISE, FLUSHED, DENORMALS_LOST),),
    "strided": ((CONTIGUOUS,),),
}
_STATES = tuple((*state, *bit) for state, bit in zip(trellis.ONE_STATE, trellis.ONE_BIT, strict=True))
_DECODE: Mapping[str, Groups] = {
    **_SPECIAL,
    "extreme": ((LARGEST_INFINITE, trellis.NARROWER),),
    "odd-shape": ((LAST_UNWRITTEN,),),
    "real": ((trellis.SCALE_MOVED,), (trellis.WRAP,)),
    "exhaustive": _STATES,
}
_ROW: Mapping[str, Groups] = {
    **_SPECIAL,
    "odd-shape": ((trellis.LAST_ROW,), (LAST_UNWRITTEN,)),
    "large-vocab": ((trellis.FAR_ROWS,),),
    "random": ((trellis.order("sequential"), trellis.mistake("product and sum rounded apart")),),
    "real": ((trellis.SCALE_MOVED,), (trellis.mistake("codes that are correctly rounded"),)),
    "exhaustive": _STATES,
}
NEAREST: Mapping[str, Mapping[str, Groups]] = {
    "normalized_argmax": _ARGMAX,
    "argmax_given": _ARGMAX,
    "apply_token_bitmask": _MASK,
    "logit_softcap": _SOFTCAP,
    "compiled_logit_softcap": _SOFTCAP,
    DECODE: _DECODE,
    VALUES: {"exhaustive": trellis.ONE_SUM, "odd-shape": ((LAST_UNWRITTEN,),)},
    DOWN: _ROW,
    PAIRS: _ROW,
    SCATTER: _ROW,
    FACTORED: {**_ROW, "real": ((trellis.SCALE_MOVED,),)},
    FOLD: {**_SPECIAL, "odd-shape": ((LAST_UNWRITTEN,),)},
}
"""By operation and tag."""

SPECIALS: Mapping[str, str] = {
    "zero": "signed-zero",
    "infinity": "inf",
    "nan": "nan",
    "extreme": "extreme",
    "denormal": "denormal",
    "normal": "extreme",
}
"""The tag of what a case's parameter `group` puts in."""


def tags_of(case: Case) -> list[str]:
    """The tags to which a case is held: of a kind whose groups stand for its specials, that of the case's own group."""
    tags = [tag for tag in kind_of(case).tags if tag != RAISES]
    group = dict(case.parameters).get("group")
    if group is None:
        return tags
    return [tag for tag in tags if tag not in SPECIALS.values() or tag == SPECIALS[str(group)]]
