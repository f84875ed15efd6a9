"""The pattern of a difference: histogram, map and diagnoses of one output that is not what it should be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mlx_assay.conformance.diagnosis.claim import PLACES, VAGUE, Claim, ranked
from mlx_assay.conformance.diagnosis.copies import copies, unstable
from mlx_assay.conformance.diagnosis.evidence import Evidence, distinct
from mlx_assay.conformance.diagnosis.grid import grid
from mlx_assay.conformance.diagnosis.histogram import histogram
from mlx_assay.conformance.diagnosis.hooks import marks, orders, suspects
from mlx_assay.conformance.diagnosis.identities import identities
from mlx_assay.conformance.diagnosis.places import where
from mlx_assay.conformance.diagnosis.values import values
from mlx_assay.conformance.record import Diagnosis, Pattern

FINDERS: tuple[Callable[[Evidence], Iterator[Claim]], ...] = (
    suspects,
    orders,
    copies,
    unstable,
    identities,
    values,
    marks,
    where,
)
TOLD = 8
"""Diagnoses of a pattern, at most."""
WORDS = 200
"""Characters of an error's text that a report takes."""


def pattern(evidence: Evidence) -> Pattern:
    """What is to be said of a difference. Never raises: what fails is named among the diagnoses."""
    dtype, shape = str(evidence.want.dtype), [int(extent) for extent in evidence.want.shape]
    try:
        with np.errstate(all="ignore"):
            diagnoses = _diagnoses(evidence)
            bars, without = histogram(evidence)
            cells = grid(evidence)
    except Exception as error:
        return Pattern(dtype=dtype, shape=shape, diagnoses=[_failed("", error)])
    return Pattern(dtype=dtype, shape=shape, diagnoses=diagnoses, histogram=bars, without_distance=without, map=cells)


def _diagnoses(evidence: Evidence) -> list[Diagnosis]:
    claims: list[Claim] = []
    failed: list[Diagnosis] = []
    for find in FINDERS:
        try:
            claims += find(evidence)
        except Exception as error:
            failed.append(_failed(find.__name__, error))
    found = _distinct(ranked(claims, evidence))
    if not found:
        rows = distinct(evidence.places // evidence.columns).size
        text = f"no pattern: {evidence.count} of {evidence.total} places"
        found.append(Diagnosis("none", f"{text}, in {rows} of {evidence.rows} rows" if evidence.rows > 1 else text, 0))
    return [*found[:TOLD], *failed]


def _distinct(found: list[Diagnosis]) -> list[Diagnosis]:
    """Each kind once, but for wrong answers that have names of their own; nothing twice."""
    kept: dict[tuple[str, str], Diagnosis] = {}
    for one in found:
        kept.setdefault((one.kind, one.text if one.kind == "suspect" else ""), one)
    return list(kept.values())


def _failed(finder: str, error: Exception) -> Diagnosis:
    of = f" of {finder}" if finder else ""
    return Diagnosis("failed", f"no diagnosis{of}: {type(error).__name__}: {error}"[:WORDS], 0)


def told(pattern: Pattern) -> str:
    """A line of a failing case's text: the best diagnosis, and where, if that was the one on values; or nothing."""
    clear = [one for one in pattern.diagnoses if one.kind not in VAGUE]
    if not clear:
        return ""
    best = clear[0]
    where = next((one for one in clear if one.kind in PLACES), None)
    parts = [best.text] if where is None or where is best else [best.text, where.text]
    second = clear[1] if len(clear) > 1 else best
    if best.kind == second.kind == "suspect" and best is not second and best.covers == second.covers:
        parts[0] += f", or {second.text}"
    return f"  pattern: {' · '.join(parts)}"
