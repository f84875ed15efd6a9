"""How far apart the differing encodings are: a histogram of signed distances, in bars by powers of two."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.judging.ulp import is_nan, ordinals
from mlx_assay.conformance.record import Bar


def signed(got: np.ndarray, want: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 ranks of got less those of want, and where a distance exists: two NaNs are 0 apart, one has none."""
    apart = ordinals(got) - ordinals(want)
    came, wanted = is_nan(got), is_nan(want)
    apart[came & wanted] = 0
    return apart, ~(came ^ wanted)


def histogram(evidence: Evidence) -> tuple[list[Bar], int]:
    """The bars from the lowest up, and the places without a distance; of a sample, scaled to all differing places."""
    if not evidence.floats:
        return [], evidence.count
    apart, exists = signed(evidence.came, evidence.expected)
    apart = apart[exists]
    powers = np.sign(apart) * (np.floor(np.log2(np.maximum(np.abs(apart), 1))).astype(np.int64) + 1)
    levels, counts = np.unique(powers, return_counts=True)
    scaled = _scaled([*counts.tolist(), int(np.count_nonzero(~exists))], evidence.count)
    bars = [Bar(*_ends(int(level)), count) for level, count in zip(levels, scaled[:-1], strict=True) if count]
    return bars, scaled[-1]


def _ends(level: int) -> tuple[int, int]:
    """Distances of a bar: 0 alone, then 1, 2 to 3, 4 to 7 and so on, with the sign of the level."""
    if level == 0:
        return 0, 0
    least, most = 1 << (abs(level) - 1), (1 << abs(level)) - 1
    return (least, most) if level > 0 else (-most, -least)


def _scaled(counts: list[int], total: int) -> list[int]:
    """The counts in proportion, so that their sum is the total."""
    seen = sum(counts)
    if seen == total:
        return counts
    edges = np.cumsum([0, *counts])
    shares = [int(edge) * total // seen for edge in edges]
    return [after - before for before, after in pairwise(shares)]
