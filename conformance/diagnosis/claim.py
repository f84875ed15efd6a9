"""A claim: one thing that may be true of differing places, and at which of them it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.record import Diagnosis

CHANCE = 0.001
"""A claim is made where places strewn at random would give it less often than this."""
SHARE = 0.25
MOST = 0.9
FEWEST = 4
"""A claim that does not hold everywhere is made where it holds at so many places, and at this share of them."""

ORDER = (
    "suspect",
    "order",
    "unwritten",
    "stale",
    "input",
    "repeated-row",
    "swapped-rows",
    "transposed",
    "reversed",
    "shifted",
    "repeated-column",
    "permuted",
    "out-of-range",
    "off-by-one",
    "tile-lost",
    "modulo",
    "offset",
    "unstable",
    "byte-order",
    "bit-order",
    "sign",
    "signed-zero",
    "denormals-flushed",
    "denormals-kept",
    "nan-missing",
    "nan-extra",
    "nan-payload",
    "zeros",
    "saturated",
    "infinity-missing",
    "infinity-extra",
    "scaled",
    "narrow",
    "truncated",
    "rounded-up",
    "byte-lane",
    "only-where",
    "last-place",
    "few-ulps",
    "constant",
    "tail",
    "last-column",
    "first-column",
    "last-row",
    "first-row",
    "tile",
    "lane",
    "stride",
    "beyond",
    "rows",
    "columns",
    "run",
    "within-tail",
    "within-tile",
    "one-place",
    "everywhere",
    "none",
    "failed",
)
"""Every kind, what says most of a fault first."""

PLACES = frozenset(ORDER[ORDER.index("tail") :])
"""Kinds that say where; the others say what."""

MOVED = frozenset({"swapped-rows", "transposed", "reversed", "shifted", "repeated-column", "permuted", "offset"})
"""Kinds that an output with a period of its own imitates: they hold nearly everywhere or not at all."""

VAGUE = frozenset({"one-place", "everywhere", "none", "failed"})
"""Kinds that a line on a terminal can do without; any other is told before them."""


@dataclass(frozen=True)
class Claim:
    """A kind of ORDER, a sentence, and for each place that is looked at whether the claim holds there.

    `rule` is the number of the contract's rule that is broken, where the contract tells.
    """

    kind: str
    text: str
    holds: np.ndarray
    rule: str = ""

    def covers(self, evidence: Evidence) -> int:
        """Differing places for which it accounts: counted, or of a sample the same share, rounded down."""
        held = int(np.count_nonzero(self.holds))
        return evidence.count if held == self.holds.size else evidence.count * held // self.holds.size

    def worth(self, evidence: Evidence) -> bool:
        """Whether it holds everywhere, or at enough places."""
        covered = self.covers(evidence)
        share = MOST if self.kind in MOVED else SHARE
        return covered == evidence.count or covered >= max(FEWEST, share * evidence.count)

    def diagnosis(self, evidence: Evidence) -> Diagnosis:
        """As a report has it; a claim that does not hold everywhere says so."""
        covered, looked = self.covers(evidence), evidence.places.size
        text = self.text if covered == evidence.count else f"{self.text} ({covered} of {evidence.count} places)"
        if looked < evidence.count:
            text += f", by {looked} places of {evidence.count}"
        return Diagnosis(self.kind, text, covered, self.rule)


def everywhere(evidence: Evidence) -> np.ndarray:
    """A claim's `holds` where it holds at all places."""
    return np.ones(evidence.places.size, dtype=bool)


def unlikely(fraction: float, count: int, hypotheses: float = 1.0) -> bool:
    """Whether places strewn at random all lie in a part of this size, one of so many, less often than CHANCE."""
    return math.log(max(hypotheses, 1.0)) + count * math.log(min(1.0, max(fraction, 1e-300))) < math.log(CHANCE)


def ranked(claims: list[Claim], evidence: Evidence) -> list[Diagnosis]:
    """Those worth making: what holds everywhere first, in ORDER, then by the places accounted for; VAGUE last."""
    worthy = [claim for claim in claims if claim.worth(evidence)]

    def rank(claim: Claim) -> tuple[bool, int, int]:
        missed = evidence.count - claim.covers(evidence)
        return (claim.kind in VAGUE, missed, ORDER.index(claim.kind))

    return [claim.diagnosis(evidence) for claim in sorted(worthy, key=rank)]
