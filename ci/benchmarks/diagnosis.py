"""What differing places of a large output have in common: seconds for 512 rows of 262,144 logits, as bfloat16."""

from __future__ import annotations

import time

import ml_dtypes
import numpy as np
from figure import Figure

from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.diagnosis.pattern import pattern

ROWS, VOCABULARY = 512, 262_144
WHERE = {"everywhere": np.s_[:], "in one lane of each simdgroup": np.s_[:, 5::32], "in the last tile": np.s_[:, -4096:]}


def measure() -> list[Figure]:
    """The last bit of each place is wrong, all over the output or in a part of it."""
    rng = np.random.default_rng(0)
    want = rng.integers(0, 1 << 15, (ROWS, VOCABULARY), dtype=np.uint16)
    figures = []
    for name, where in WHERE.items():
        got = want.copy()
        got[where] ^= 1
        at = np.flatnonzero(got.reshape(-1) != want.reshape(-1))
        began = time.perf_counter()
        found = pattern(Evidence(got.view(ml_dtypes.bfloat16), want.view(ml_dtypes.bfloat16), at))
        seconds = time.perf_counter() - began
        if not found.map or sum(found.map.counts) != at.size:
            raise RuntimeError(f"Expected {at.size} differing places on the map")
        figures.append(Figure(f"diagnosis: {ROWS} x {VOCABULARY}, {name}", seconds, "s", "<=", 1.5))
    return figures
