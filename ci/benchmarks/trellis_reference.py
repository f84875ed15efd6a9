"""The reference side of the trellis: the encoder in NumPy on two threads, and the oracle of a row on one core."""

from __future__ import annotations

import statistics
import time

from figure import Figure

ROWS, COLUMNS = 64, 4096
WHOLE = 1024
"""Rows of the matrix that the goal speaks of; a part of it is coded, and the time multiplied."""
ORACLE_ROWS, ORACLE_COLUMNS = 2176, 512


def measure() -> list[Figure]:
    """Wall seconds: coding 1,024 x 4,096 weights, and the oracles of one row of 2,176 x 512."""
    import numpy as np

    from mlx_assay.fixtures.draw import Draw
    from mlx_assay.fixtures.trellis_encoder import encoded
    from mlx_assay.fixtures.trellis_words import random_words
    from mlx_assay.oracles import trellis_bound, trellis_row
    from mlx_assay.oracles.trellis_layout import Packed

    f32 = np.dtype(np.float32)
    weights = Draw(1).normal(f32, (ROWS, COLUMNS))
    figures = []
    for k in (2, 3, 4):
        began = time.perf_counter()
        encoded(weights, k)
        seconds = (time.perf_counter() - began) * WHOLE / ROWS
        figures.append(Figure(f"encoder, k {k}, {WHOLE} x {COLUMNS} weights", seconds, "s", "<=", 150))
    x, scales = Draw(2).normal(f32, (1, ORACLE_ROWS)), Draw(3).normal(np.dtype(np.float16), (ORACLE_ROWS,))
    for k in (2, 3, 4):
        packed = Packed(random_words(Draw(4), ORACLE_ROWS, ORACLE_COLUMNS, k), k, 12)
        spent = []
        for _ in range(5):
            began = time.perf_counter()
            trellis_row.down_row(x, packed, scales, f32, "ascending-butterfly", True)
            trellis_bound.exact(x, packed, scales)
            spent.append(1000 * (time.perf_counter() - began))
        name = f"row oracles, k {k}, {ORACLE_ROWS} x {ORACLE_COLUMNS}"
        figures.append(Figure(name, statistics.median(spent), "ms", "<=", 500))
    return figures
