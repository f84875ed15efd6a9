"""What stands there in place of an answer: poison, an input, an earlier output, or another part of the right one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.diagnosis.claim import Claim, everywhere
from mlx_assay.conformance.diagnosis.evidence import Evidence, distinct
from mlx_assay.conformance.judging.ulp import encodings

POISONS = (0xFFFFFFFF, 0x7B7B7B7B)
"""What calls find in their outputs: of process.exchange, whose other imports a comparison of files can do without."""
SEVERAL = 8
DISTINCT = 3
"""Values that must differ from each other before one part of an output is said to be another part of it."""
WHOLE = 1 << 22
"""Elements of differing rows up to which rows are compared as wholes."""
SWAPPED = (1, 2, 4, 8, 16, 32)
SHIFTS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def copies(evidence: Evidence) -> Iterator[Claim]:
    """Every claim of a copy."""
    if found := _unwritten(evidence):
        yield found
    for name, array in evidence.arguments.items():
        if evidence.comparable(array):
            yield Claim("input", f"the input {name}, copied", _known(evidence, evidence.alike(array)))
    for name, array in evidence.earlier:
        if evidence.comparable(array):
            yield Claim("stale", name, _known(evidence, evidence.alike(array)))
    yield from _repeated(evidence)
    if distinct(evidence.bits[evidence.telling]).size >= DISTINCT:
        for claim in _moved(evidence):
            if distinct(evidence.bits[claim.holds & evidence.telling]).size >= DISTINCT:
                yield claim


def _known(evidence: Evidence, alike: np.ndarray) -> np.ndarray:
    """Where values are alike; where most of them are such as occur by chance, those alone that are not."""
    telling = np.asarray(alike & evidence.telling)
    return alike if 2 * np.count_nonzero(telling) >= np.count_nonzero(alike) else telling


def unstable(evidence: Evidence) -> Iterator[Claim]:
    """Another value in each of the two rounds."""
    if evidence.other is not None and evidence.comparable(evidence.other):
        apart = ~evidence.alike(evidence.other)
        yield Claim("unstable", "another value in each round: a race, or memory that was never written", apart)


def poison_of(pattern: int, array: np.ndarray) -> np.ndarray:
    """Where an array holds a 32-bit pattern, or of words of another width as much of it, or it twice."""
    bits = encodings(array)
    pattern *= 0x100000001
    return np.asarray(bits == bits.dtype.type(pattern & np.iinfo(bits.dtype).max))


def _unwritten(evidence: Evidence) -> Claim | None:
    """Poison: in both rounds, each its own, or in this one alone."""
    if evidence.poison is None:
        return _poisoned(evidence)
    holds = poison_of(evidence.poison, evidence.came)
    if not holds.any():
        return None
    other = evidence.other
    if other is None or not evidence.comparable(other) or evidence.other_poison is None:
        return Claim("unwritten", "never written: what its memory was filled with", holds)
    both = holds & poison_of(evidence.other_poison, evidence.flat(other))
    if both.any():
        return Claim("unwritten", "never written: each round holds what its memory was filled with", both)
    holds &= ~evidence.alike(other)
    return Claim("unwritten", "not written in one of the two rounds: it holds what its memory was filled with", holds)


def _poisoned(evidence: Evidence) -> Claim | None:
    """Of outputs from anywhere: what this suite fills memory with. All ones is many an integer's own."""
    for pattern in POISONS:
        holds = poison_of(pattern, evidence.came)
        if (
            np.count_nonzero(holds) >= SEVERAL
            and evidence.bits.dtype.itemsize > 1
            and (evidence.floats or pattern + 1 >> 32 == 0)
        ):
            text = f"0x{pattern:08x}, with which this suite fills memory: never written"
            return Claim("unwritten", text, holds)
    return None


def _repeated(evidence: Evidence) -> Iterator[Claim]:
    """One row's answer in every row, or rows in each other's places."""
    identities = evidence.want.ndim == 1 and not evidence.floats
    rows, columns = (evidence.total, 1) if identities else (evidence.rows, evidence.columns)
    if rows < 2 or not evidence.telling.any():
        return
    row, column = np.divmod(evidence.places, columns)
    wrong = distinct(row)
    for side, source in (("first", 0), ("last", rows - 1)):
        alike = evidence.bits == encodings(evidence.want).reshape(-1)[source * columns + column]
        missed = np.zeros(rows, dtype=bool)
        missed[row[~alike]] = True
        if np.count_nonzero(~missed[wrong]) >= min(2, rows - 1):
            holds = ~missed[row]
            yield Claim("repeated-row", f"the {side} row's answer, in other rows too", _known(evidence, holds))
    if wrong.size >= 2 and wrong.size * columns <= WHOLE:
        yield from _swapped(evidence, rows, wrong)


def _swapped(evidence: Evidence, rows: int, wrong: np.ndarray) -> Iterator[Claim]:
    got, want = (encodings(array).reshape(rows, -1) for array in (evidence.got, evidence.want))
    identities = want.shape[1] < DISTINCT
    sought = range(rows) if not identities and evidence.total <= WHOLE else wrong
    known = {want[index].tobytes(): int(index) for index in sought}
    found = {int(index): known.get(got[index].tobytes()) for index in wrong}
    sources = [source for source in found.values() if source is not None]
    if not len(set(sources)) == len(sources) == wrong.size:
        return
    row, other = next((row, other) for row, other in found.items() if other is not None)
    told = f"row {row} holds row {other}'s answer"
    if set(sources) == set(found):
        yield Claim("swapped-rows", f"rows in each other's places: {told}", everywhere(evidence))
    elif len({source - row for row, source in found.items() if source is not None}) == 1:
        step = other - row
        text = f"shifted: {told}, as belongs {abs(step)} row{'s' * (abs(step) > 1)} {'ahead' if step > 0 else 'behind'}"
        yield Claim("shifted", text, everywhere(evidence))
    else:
        yield Claim("swapped-rows", f"rows of other places: {told}", everywhere(evidence))


def _moved(evidence: Evidence) -> Iterator[Claim]:
    """The right answer elsewhere: transposed, reversed, or by so many places or rows."""
    flat, rows, columns = encodings(evidence.want).reshape(-1), evidence.rows, evidence.columns
    if min(rows, columns) > 1:
        source = evidence.places % rows * columns + evidence.places // rows
        yield Claim("transposed", "the right answer, transposed", _known(evidence, evidence.bits == flat[source]))
    if columns > 1:
        source = evidence.places + columns - 1 - 2 * (evidence.places % columns)
        holds = _known(evidence, evidence.bits == flat[source])
        yield Claim("reversed", f"the right answer with its {evidence.noun}s in reverse", holds)
    yield from _along(evidence, flat)
    steps = {step: f"{step} place{'s' * (step > 1)}" for step in SHIFTS if step < evidence.total}
    if rows > 1:
        steps |= {count * columns: f"{count} row{'s' * (count > 1)}" for count in (1, 2)}
    for step, words in steps.items():
        for sign, way in ((1, "ahead"), (-1, "behind")):
            source = evidence.places + sign * step
            inside = (source >= 0) & (source < evidence.total)
            alike = inside & (evidence.bits == flat[np.where(inside, source, 0)])
            if 2 * np.count_nonzero(alike) > alike.size:
                holds = _known(evidence, alike) | ~inside
                text = f"shifted: each holds what belongs {words} {way}"
                if rows > 1 and step < columns and not holds.all():
                    first = evidence.places // columns * columns
                    turned = _known(evidence, evidence.bits == flat[first + (source - first) % columns])
                    if np.count_nonzero(turned) > np.count_nonzero(holds):
                        text, holds = f"{text}, each row by itself", turned
                yield Claim("shifted", text, holds)


def _along(evidence: Evidence, flat: np.ndarray) -> Iterator[Claim]:
    """Each row's values elsewhere in the same row: one of them all along it, in swapped pairs, or in any order."""
    rows, columns = evidence.rows, evidence.columns
    if columns < 2:
        return
    first = evidence.places // columns * columns
    for side, column in (("first", 0), ("last", columns - 1)):
        if rows > 1:
            holds = _known(evidence, evidence.bits == flat[first + column])
            yield Claim("repeated-column", f"each row's {side} value, all along it", holds)
    for step in SWAPPED:
        source = first + ((evidence.places - first) ^ step)
        if columns % (2 * step) == 0:
            apart = "neighbours" if step == 1 else f"{evidence.noun}s {step} apart"
            holds = _known(evidence, evidence.bits == flat[source])
            yield Claim("permuted", f"{apart} in each other's places", holds)
    if evidence.total <= WHOLE:
        got, want = (encodings(array).reshape(rows, columns) for array in (evidence.got, evidence.want))
        same = got.sum(1, dtype=np.uint64) == want.sum(1, dtype=np.uint64)
        same[same] = (np.sort(got[same], 1) == np.sort(want[same], 1)).all(1)
        if same.any():
            rising = bool((np.diff(evidence.got.reshape(rows, columns)[same].astype(np.float64), axis=1) >= 0).all())
            text = f"{'each row' if rows > 1 else 'the output'}'s values in another order{': rising' if rising else ''}"
            yield Claim("permuted", text, same[evidence.places // columns])
