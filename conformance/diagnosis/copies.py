"""What stands there in place of an answer: poison, an input, an earlier output, or another part of the right one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.diagnosis.claim import Claim, everywhere
from mlx_assay.conformance.diagnosis.evidence import Evidence, distinct
from mlx_assay.conformance.judging.ulp import encodings

DISTINCT = 3
"""Values that must differ from each other before one part of an output is said to be another part of it."""
WHOLE = 1 << 22
"""Elements of differing rows up to which rows are compared as wholes."""
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
        return None
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
    known = {want[index].tobytes(): int(index) for index in wrong}
    found = {int(index): known.get(got[index].tobytes()) for index in wrong}
    sources = [source for source in found.values() if source is not None]
    if len(set(sources)) == len(sources) == wrong.size:
        row, other = next(iter(found.items()))
        text = f"rows in each other's places: row {row} holds row {other}'s answer"
        yield Claim("swapped-rows", text, everywhere(evidence))


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
                yield Claim("shifted", f"shifted: each holds what belongs {words} {way}", holds)
