"""The trellis row kernels under the host executor: 2,176 stored rows, 512 columns, one core."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from figure import Figure

ROWS, COLUMNS = 2176, 512
REPEATS = 9
GOAL = 1000


def measure() -> list[Figure]:
    """Wall milliseconds: the first call of each row kernel, with its compilation, and the median of later ones."""
    import mlx.core as mx
    import numpy as np

    from mlx_assay.fixtures.draw import Draw
    from mlx_assay.impl import executors, trellis

    draw = Draw(2)
    x = mx.array(draw.normal(np.dtype(np.float16), (1, ROWS)))
    scales = mx.array(draw.normal(np.dtype(np.float16), (ROWS,)))
    figures = []
    with executors.use("host"):
        for k in (2, 3, 4):
            interleave = 2 if k == 3 else None
            geometry = trellis.Geometry(k, 12, 256, 0, ROWS, COLUMNS, ROWS, COLUMNS, interleave)
            words = draw.bits(np.dtype(np.uint32), geometry.code_shape)
            operands = (x, mx.array(words), scales, geometry)
            mx.eval(*operands[:3])
            row = trellis.down_k3_interleaved_codebook_row if interleave else trellis.down_codebook_row
            for name, call in ((row.__name__, row), ("scatter_row", trellis.scatter_row)):
                first, later = _times(lambda call=call, operands=operands: mx.eval(call(*operands)))
                shape = f"k {k}, {ROWS} x {COLUMNS}"
                figures.append(Figure(f"{name}, {shape}, first", first, "ms", "<=", GOAL))
                figures.append(Figure(f"{name}, {shape}, later", later, "ms", "<=", GOAL))
    return figures


def _times(call: Callable[[], Any]) -> tuple[float, float]:
    spent = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        call()
        spent.append(1000 * (time.perf_counter() - began))
    return spent[0], statistics.median(spent[1:])
