"""What wrong numbers have in common with the right ones, place by place."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from mlx_assay.conformance.diagnosis.claim import Claim
from mlx_assay.conformance.diagnosis.evidence import Evidence, distinct
from mlx_assay.conformance.diagnosis.histogram import signed
from mlx_assay.conformance.judging.relaxation import signs
from mlx_assay.conformance.judging.ulp import MANTISSA_BITS, infinity, is_denormal, is_nan, is_zero, magnitudes

SEVERAL = 8
"""Places that must agree before a direction, a factor or a precision is claimed: 2^-8 is no chance."""
FEW_ULPS = {7: 4, 10: 8, 23: 64}
"""Units in the last place that are still few, by the bits of the mantissa."""
MOSTLY = 0.75
"""Share of the places from which on those few units are told although others are further off."""
FACTOR = 2.0**-6
"""How near to each other the ratios of one factor lie, which 8 bits of a bfloat16 blur."""
WHOLE = 1 << 24
"""Elements up to which an output is looked at as a whole."""
NOTABLE = 8
"""Units in the last place of the larger number from which on a difference is no matter of rounding."""
HALVES = (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))


def values(evidence: Evidence) -> Iterator[Claim]:
    """Every claim on numbers; on ids only those that a word has as well."""
    bits = evidence.bits
    if not evidence.telling.all():
        yield Claim("zeros", "zeros", bits == 0)
    yield from words(evidence)
    if evidence.floats:
        yield from _special(evidence)
        yield from _scaled(evidence)
        yield from _offset(evidence)
        yield from _narrow(evidence)
        yield from _rounded(evidence)
    same = distinct(bits)
    if same.size == 1 and evidence.count >= FEWEST_ALIKE and int(same[0]) != 0:
        width = 2 * bits.dtype.itemsize
        value = f" ({float(evidence.came[0]):.9g})" if evidence.floats else ""
        text = f"one value everywhere, 0x{int(same[0]):0{width}x}{value}"
        yield Claim("constant", text, np.ones(bits.size, dtype=bool))


FEWEST_ALIKE = 3


def words(evidence: Evidence) -> Iterator[Claim]:
    """Bytes or bits of each word in another order, or one byte of it alone wrong."""
    bits, wanted = evidence.bits, evidence.wanted
    size = bits.dtype.itemsize
    octets, right = (array.view(np.uint8).reshape(-1, size) for array in (bits, wanted))
    if size > 1:
        yield Claim("byte-order", "the bytes of each word in reverse", (octets == right[:, ::-1]).all(1))
    if size > 2:
        swapped = (octets == np.roll(right, size // 2, 1)).all(1)
        yield Claim("byte-order", f"the two {4 * size}-bit halves of each word swapped", swapped)
    mirrored = np.packbits(np.unpackbits(right[:, ::-1].copy(), axis=1, bitorder="little"), axis=1, bitorder="big")
    yield Claim("bit-order", "the bits of each word in reverse", (octets == mirrored).all(1))
    wrong = (octets != right).any(0)
    if size > 2 and evidence.count >= SEVERAL and wrong.sum() == 1:
        byte = int(np.flatnonzero(wrong)[0])
        changed = distinct(octets[:, byte] ^ right[:, byte]).size
        if changed >= FEWEST_ALIKE and byte:
            text = f"byte {byte} of each word alone is wrong, counted from the lowest"
            yield Claim("byte-lane", text, np.ones(bits.size, dtype=bool))


def _special(evidence: Evidence) -> Iterator[Claim]:
    """Signs, zeros, NaN, infinities, denormals."""
    got, want = evidence.came, evidence.expected
    came, wanted = is_nan(got), is_nan(want)
    zero, small = is_zero(got), is_denormal(want)
    flipped = (magnitudes(got) == magnitudes(want)) & ~came & ~wanted
    yield Claim("signed-zero", "zeros of the other sign", flipped & zero)
    yield Claim("sign", _turned(evidence, flipped & ~zero), flipped & ~zero)
    yield Claim("nan-missing", "a number where NaN is expected", wanted & ~came)
    yield Claim("nan-extra", "NaN where a number is expected", came & ~wanted)
    yield Claim("nan-payload", "NaN of other sign or payload", came & wanted)
    yield Claim("denormals-flushed", "zero where a denormal is expected", zero & small)
    yield Claim("denormals-kept", "a denormal where zero is expected", is_denormal(got) & is_zero(want))
    limit = infinity(want.dtype)
    size = magnitudes(got)
    endless = magnitudes(want) == limit
    largest = int(magnitudes(evidence.got[~is_nan(evidence.got)]).max(initial=0)) if evidence.total <= WHOLE else 0
    clamped = ~came & ~wanted & (size == size.max(initial=0)) & (magnitudes(want) > size) & (size >= largest) & ~zero
    short = ~came & (size == size.max(initial=0)) & ~clamped
    if 8 * np.count_nonzero(short) > np.count_nonzero(clamped):
        pass  # as likely above what is expected as below: one value, and no bound
    elif np.count_nonzero(clamped) >= 2 or (clamped.any() and bool((size == limit - 1).all())):
        yield Claim("saturated", f"saturated at {float(np.abs(got[clamped][0].astype(np.float32))):.9g}", clamped)
    yield Claim("infinity-missing", "a number where an infinity is expected", endless & ~came & (size < limit))
    yield Claim("infinity-extra", "an infinity where a number is expected", (size == limit) & ~endless & ~wanted)


def _turned(evidence: Evidence, flipped: np.ndarray) -> str:
    """Of the places whose sign alone is wrong: lost, where all should have the one that the others have rightly."""
    should = signs(evidence.expected[flipped])
    if should.size < SEVERAL or should.min() != should.max() or not evidence.count < evidence.total <= WHOLE:
        return "the sign is flipped"
    right = np.delete(np.ascontiguousarray(evidence.want).reshape(-1), evidence.at)
    if bool((signs(right) == should[0]).any()):
        return "the sign is flipped"
    came, due = ("positive", "negative") if should[0] else ("negative", "positive")
    return f"the sign is lost: {came} where {due} is expected"


def _scaled(evidence: Evidence) -> Iterator[Claim]:
    """One factor between what came and what was expected."""
    got, want = (array.astype(np.float64) for array in (evidence.came, evidence.expected))
    usable = np.isfinite(got) & np.isfinite(want) & (want != 0) & (got != 0)
    usable &= ~is_denormal(evidence.came) & ~is_denormal(evidence.expected)
    if np.count_nonzero(usable) < SEVERAL or distinct(evidence.wanted[usable]).size < SEVERAL:
        return
    ratio = np.divide(got, want, out=np.ones_like(got), where=usable)
    factor = float(np.median(ratio[usable]))
    if factor and abs(factor - 1) > 4 * FACTOR and abs(factor + 1) > 4 * FACTOR:
        near = usable & (np.abs(ratio - factor) <= FACTOR * abs(factor))
        yield Claim("scaled", f"scaled: about {factor:.4g} times what is expected", near)


def _offset(evidence: Evidence) -> Iterator[Claim]:
    """One number added to what was expected, as exactly as the dtype has it."""
    got, want = (array.astype(np.float64) for array in (evidence.came, evidence.expected))
    usable = np.isfinite(got) & np.isfinite(want)
    if np.count_nonzero(usable) < SEVERAL or distinct(evidence.wanted[usable]).size < SEVERAL:
        return
    apart = np.where(usable, got - np.where(usable, want, 0), 0)
    step = float(np.median(apart[usable]))
    unit = 2.0 ** -MANTISSA_BITS[evidence.want.dtype] * np.maximum(np.abs(got), np.abs(want))
    near = usable & (np.abs(apart - step) <= 2 * unit) & (abs(step) >= NOTABLE * unit)
    if distinct(evidence.bits[near]).size >= SEVERAL:
        yield Claim("offset", f"about {abs(step):.6g} {'more' if step > 0 else 'less'} than what is expected", near)


def _narrow(evidence: Evidence) -> Iterator[Claim]:
    """float32 that came by way of a half type: the answer rounded to it, or nothing but its values."""
    if evidence.want.dtype != np.float32:
        return
    got, want = evidence.came, evidence.expected
    telling = evidence.telling
    for dtype in HALVES:
        kept = got.astype(dtype).astype(np.float32).view(np.uint32) == evidence.bits
        through = want.astype(dtype).astype(np.float32).view(np.uint32) == evidence.bits
        if np.count_nonzero(through & telling) >= min(2, evidence.count):
            yield Claim("narrow", f"the right answer, rounded to {dtype}", through)
        elif np.count_nonzero(kept & telling) >= SEVERAL and distinct(evidence.bits[kept & telling]).size >= SEVERAL:
            yield Claim("narrow", f"nothing but values of {dtype}: computed or kept in it", kept & telling)
    cut = (evidence.wanted & np.uint32(0xFFFF0000)) == evidence.bits
    if np.count_nonzero(cut & telling) >= min(2, evidence.count):
        yield Claim("truncated", "the right answer, cut to bfloat16 where it should be rounded or kept", cut & telling)


def _rounded(evidence: Evidence) -> Iterator[Claim]:
    """Off by one in the last place, towards zero, away from it or both; or by a few."""
    apart, exists = signed(evidence.came, evidence.expected)
    limit = infinity(evidence.want.dtype)
    for side in (evidence.came, evidence.expected):
        exists &= (magnitudes(side) != 0) & (magnitudes(side) < limit)
    outward = np.where(signs(evidence.expected), -apart, apart)
    short, over = exists & (outward == -1), exists & (outward == 1)
    fewer, more = int(np.count_nonzero(short)), int(np.count_nonzero(over))
    if fewer >= SEVERAL and fewer >= 32 * more:
        yield Claim("truncated", "one in the last place towards zero: truncated where it should be rounded", short)
    elif more >= SEVERAL and more >= 32 * fewer:
        yield Claim(
            "rounded-up", "one in the last place away from zero: rounded up where it should be to nearest", over
        )
    elif fewer or more:
        told = f"off by one in the last place, {more} away from zero and {fewer} towards it"
        yield Claim("last-place", f"{told}: one rounding too few or too many, or other additions", short | over)
    most = FEW_ULPS[MANTISSA_BITS[evidence.want.dtype]]
    near = exists & (np.abs(apart) <= most)
    part = int(np.count_nonzero(near))
    if part == near.size or (part >= SEVERAL and part >= MOSTLY * near.size):
        worst = int(np.abs(apart[near]).max())
        if worst > 1:
            yield Claim("few-ulps", f"at most {worst} in the last place: other roundings, or other additions", near)
