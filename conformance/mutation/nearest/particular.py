"""Wrong rules that kinds hunt by their own reason: each of their cases has to fail one of each group at least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from mlx_assay.conformance.mutation.nearest import argmax, softcap, trellis
from mlx_assay.conformance.mutation.nearest.mask import DEAD_END, FILLED, LAST_WORDS, PADDING
from mlx_assay.conformance.mutation.nearest.readings import STALE_FORM, stale
from mlx_assay.conformance.mutation.nearest.trial import Wrong, suspected
from mlx_assay.fixtures.kind import Kind
from mlx_assay.fixtures.trellis_call import DOWN, FACTORED, PAIRS, SCATTER
from mlx_assay.fixtures.trellis_matrix import DECODE, VALUES
from mlx_assay.fixtures.trellis_sums import FOLD

Groups = Sequence[Sequence[Wrong]]


class Held(NamedTuple):
    """Kinds by their names, globs, of some operations, and what each of their cases has to fail."""

    operations: tuple[str, ...]
    kinds: tuple[str, ...]
    groups: Groups


def alone(*names: str) -> Groups:
    """A group of its own for each suspect."""
    return tuple((suspected(name),) for name in names)


ARGMAX = ("normalized_argmax", "argmax_given")
MASK = ("apply_token_bitmask",)
SOFTCAPS = ("logit_softcap", "compiled_logit_softcap")
ROWS = (DOWN, PAIRS, SCATTER)
_BYTES = "each word's bytes in reverse"
_OWN_LSE = suspected("the largest logit as normaliser", "a logsumexp in float64")
_LSE_BIT = suspected("a logsumexp added up one by one")
_LENGTH = suspected("ids past the last word allowed")
_CAP_BEFORE = stale("cap")
_ORDERS = tuple((trellis.order(name),) for name in ("descending-butterfly", "sequential"))
_ROUNDED = tuple(
    (trellis.mistake(name),) for name in ("product and sum rounded apart", "a sum in float64, rounded twice")
)
_FORMS = suspected(*(f"the form {form}" for form in ("precise", "unrefined", "integer", "state", "refined", "bits")))
_CURVE = (suspected("tanh by a ratio of exponentials"), suspected("the reciprocal of the cap"))

PARTICULAR: tuple[Held, ...] = (
    Held(ARGMAX, ("lse/finite",), ((_OWN_LSE,),)),
    Held(ARGMAX, ("ties/last-bit",), ((_LSE_BIT,),)),
    Held(ARGMAX, ("integer/winner",), ((argmax.FLOATING, argmax.OTHER_SIGN),)),
    Held(ARGMAX, ("integer/extreme",), ((argmax.RAW, argmax.OTHER_SIGN),)),
    Held(ARGMAX, ("integer/neighbours",), ((argmax.ADDED,), (argmax.HALVED,))),
    Held(MASK, ("bit/*",), alone("bits counted from each word's highest", _BYTES)),
    Held(MASK, ("word/every-byte-value",), alone("bits counted from each byte's highest", _BYTES)),
    Held(MASK, ("word/sign-bit",), alone("bit 31 lost", "a word with its sign bit set allowing all its ids")),
    Held(MASK, ("mask/none-allowed", "mask/above-vocabulary"), ((DEAD_END,),)),
    Held(MASK, ("words/short",), ((_LENGTH,),)),
    Held(MASK, ("vocabulary/padded", "vocabulary/padded-large"), ((PADDING,),)),
    Held(MASK, ("words/long",), ((LAST_WORDS,),)),
    Held(MASK, ("reuse/restrictive-then-open", "reuse/same-logits", "bits/container-by-turns"), ((stale("bits"),),)),
    Held(MASK, ("reuse/same-words",), ((stale("logits"),),)),
    Held(MASK, ("reuse/changing-length",), ((FILLED,),)),
    Held(MASK, ("reuse/changing-rows", "reuse/changing-dtype"), ((STALE_FORM,),)),
    Held(MASK, ("logits/additive", "logits/infinity", "logits/nan-payload"),
         alone("-inf written in place of the logit, not added,")),
    Held(MASK, ("logits/rejection-written",), alone("the lowest finite number for -inf")),
    Held(SOFTCAPS, ("cap/inexact",), ((suspected("the cap's first 7 digits", "the cap as a whole number"),),)),
    Held(SOFTCAPS, ("cap/negative",), ((softcap.SIGNLESS,),)),
    Held(SOFTCAPS, ("cap/zero", "cap/infinite"), ((softcap.UNCAPPED,),)),
    Held(SOFTCAPS, ("cap/underflowing", "cap/overflowing"), alone("float64 throughout")),
    Held(SOFTCAPS, ("cap/neighbours", "reuse/alternating-caps", "reuse/many-caps", "reuse/colliding-caps"),
         ((_CAP_BEFORE,),)),
    Held(SOFTCAPS, ("reuse/alternating-dtypes", "reuse/changing-shapes", "reuse/changing-ranks"), ((STALE_FORM,),)),
    Held(SOFTCAPS, ("reuse/same-input",), alone("the softcap applied twice")),
    Held(SOFTCAPS, ("sweep/*",), ((*_CURVE, suspected("a clamp in place of tanh")),)),
    Held(ROWS, ("scale/listed",), ((trellis.SCALE_MOVED,), (suspected("the scale applied to x"),))),
    Held((*ROWS, DECODE), ("scale/dtype", "scale/as-x", "variant/dtype"), ((trellis.SCALES_HALF,),)),
    Held((*ROWS, FACTORED, DECODE), ("state/bits", "kernel/bits"), ((trellis.WIDER,), (trellis.NARROWER,))),
    Held((*ROWS, FACTORED), ("output/named",), ((suspected("a result cut to bfloat16, not rounded,"),),)),
    Held(ROWS, ("kernel/each",), ((trellis.WRAP,), (trellis.BYTES,), (trellis.SHORT_SPLIT,), *_ORDERS)),
    Held(ROWS, ("fma/rounded-once",), _ROUNDED),
    Held(ROWS, ("sum/magnitudes",), _ORDERS),
    Held(ROWS, ("sum/cancelling",), _ORDERS),
    Held((*ROWS, DECODE), ("bit/one",), ((trellis.WRAP,), (trellis.BYTES,), (trellis.BITS,), (trellis.UPWARD,))),
    Held((*ROWS, DECODE), ("state/every",), ((trellis.WRAP,), (trellis.BYTES,))),
    Held(ROWS, ("block/order",), ((trellis.SWAPPED,), (trellis.BACKWARD,))),
    Held((PAIRS,), ("block/order", "shape/blocks"), ((trellis.ROW_BY_ROW,),)),
    Held((FACTORED,), ("scale/listed", "sum/magnitudes"), ((trellis.SCALE_MOVED,),)),
    Held((FACTORED,), ("scale/great",), ((trellis.order("sequential"),),)),
    Held((DECODE,), ("shape/pairs",), ((trellis.ROW_BY_ROW,), (trellis.SWAPPED,))),
    Held((DECODE,), ("shape/block-length",), ((trellis.WRAP,),)),
    Held((DECODE,), ("variant/all", "variant/form"), ((_FORMS,), (trellis.SCALE_MOVED,))),
    Held((DECODE,), ("variant/ties",),
         ((suspected("weights that are not rounded to bfloat16"),), (trellis.CUT_WEIGHTS,))),
    Held((DECODE,), ("variant/bare",), ((trellis.STORED,),)),
    Held((DECODE,), ("state/wide", "state/table"), ((trellis.NARROWER,),)),
    Held((VALUES,), ("sum/every",), ((_FORMS,),)),
    Held((FOLD,), ("sum/*",), _ORDERS),
    Held((FOLD,), ("value/minus-zero",), ((trellis.MINUS_ZERO,),)),
    Held((FOLD,), ("value/rounding",),
         ((suspected("a result cut to bfloat16, not rounded,", "sums kept in bfloat16", "sums kept in float16"),),)),
)  # fmt: skip


def particular(kind: Kind) -> Iterator[Held]:
    """What holds the cases of a kind beside its tags."""
    for held in PARTICULAR:
        if kind.operation in held.operations and any(fnmatchcase(kind.name, name) for name in held.kinds):
            yield held
