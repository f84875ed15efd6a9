"""The map of an output: how many differing places each cell of a grid over it holds."""

from __future__ import annotations

import numpy as np

from mlx_assay.conformance.diagnosis.evidence import Evidence
from mlx_assay.conformance.record import Map

CELLS = 64
"""Cells a side, at most."""
EDGES = 1 << 21
"""Borders of cells that are looked up; beyond, differing places are counted one by one."""


def grid(evidence: Evidence) -> Map | None:
    """The map; None for an output of one place. Cells are powers of two wide, as tiles and simdgroups are."""
    if evidence.total < 2:
        return None
    tall, wide = _extent(evidence.rows), _extent(evidence.columns)
    rows, columns = -(-evidence.rows // tall), -(-evidence.columns // wide)
    counts = np.zeros((rows, columns), np.int64)
    if evidence.rows * columns <= EDGES:
        starts = np.arange(evidence.rows)[:, None] * evidence.columns + np.arange(columns) * wide
        found = np.searchsorted(evidence.at, np.append(starts.reshape(-1), evidence.total))
        np.add.at(counts, np.arange(evidence.rows) // tall, np.diff(found).reshape(evidence.rows, columns))
    else:
        for first in range(0, evidence.count, EDGES):
            row, column = np.divmod(evidence.at[first : first + EDGES], evidence.columns)
            cells = row // tall * columns + column // wide
            counts += np.bincount(cells, minlength=rows * columns).reshape(rows, columns)
    return Map(rows=rows, columns=columns, row_extent=tall, column_extent=wide, counts=counts.reshape(-1).tolist())


def _extent(size: int) -> int:
    """The smallest power of two of which CELLS cover an axis."""
    extent = 1
    while extent * CELLS < size:
        extent *= 2
    return extent
