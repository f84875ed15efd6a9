"""What a contract knows of its operation: places with a name, and wrong answers with a name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mlx_assay.conformance.diagnosis.claim import Claim, everywhere
from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.judging.order import diagnose
from mlx_assay.conformance.judging.ulp import encodings, is_nan

HEAVY = 1 << 22
"""Elements of the largest argument or output beyond which wrong answers are not computed."""
MOST = 0.9
"""Share of an output from which on a mark is nearly everything, and says nothing."""
STRANGE = 0.1
NAMED = 4
"""Wrong answers that are named, at most."""


def suspects(evidence: Evidence) -> Iterator[Claim]:
    """Wrong answers that give what came: the whole of it first, then at least half of what is wrong with them."""
    if evidence.suspects is None or _size(evidence) > HEAVY:
        return
    partly: list[Claim] = []
    named = 0
    for name, make in evidence.suspects(evidence.arguments).items():
        made = np.asarray(make(), order="C")
        if named == NAMED or not evidence.comparable(made):
            continue
        here = same(evidence.came, evidence.flat(made), evidence.floats)
        if not here.any():
            continue
        came, right, wrong = (array.reshape(-1) for array in (evidence.got, evidence.want, made))
        hit = same(came, wrong, evidence.floats)
        claim = Claim("suspect", f"as {name} would give", here, evidence.rule(name))
        if hit.all():
            yield claim
            named += 1
        elif 2 * np.count_nonzero(here) >= np.count_nonzero(~same(wrong, right, evidence.floats)):
            partly.append(claim)
    yield from partly[: NAMED - named]


def _size(evidence: Evidence) -> int:
    arrays = [value.size for value in evidence.arguments.values() if isinstance(value, np.ndarray)]
    return max([evidence.total, *arrays])


def same(one: np.ndarray, other: np.ndarray, floats: bool) -> np.ndarray:
    """Equal in bits, or both NaN."""
    same = encodings(one) == encodings(other)
    return np.asarray(same | (is_nan(one) & is_nan(other))) if floats else np.asarray(same)


def orders(evidence: Evidence) -> Iterator[Claim]:
    """Known orders of addition that give every result, where the output is nothing but sums."""
    if evidence.addends is None or _size(evidence) > HEAVY:
        return
    found = diagnose(np.ascontiguousarray(evidence.got).reshape(-1), *evidence.addends(evidence.arguments))
    names = list(dict.fromkeys(candidate.name for candidate in found.matches))
    if names:
        text = f"another order of additions: {' or '.join(names[:2])}"
        yield Claim("order", text, everywhere(evidence))


def marks(evidence: Evidence) -> Iterator[Claim]:
    """Places with a name that hold every differing one, and are not nearly everything."""
    if evidence.marks is None:
        return
    for name, mask in evidence.marks(evidence.arguments).items():
        mask = np.broadcast_to(mask, evidence.want.shape)
        marked, inside = int(np.count_nonzero(mask)), evidence.flat(mask)
        part = marked / max(evidence.total, 1)
        if not inside.all() or part > MOST:
            continue
        if part**evidence.count <= STRANGE or marked <= 2 * evidence.count:
            text = f"only where {name}: {evidence.count} of {marked} such"
            yield Claim("only-where", text, everywhere(evidence), evidence.rule(name))
