"""What counting costs: the argmax kernel, float16, 8 rows of 131,072 logits, one core."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from figure import Figure

ROWS, VOCABULARY = 8, 131_072
REPEATS = 7


def measure() -> list[Figure]:
    """Medians of processor time: seconds, and as a multiple of the kernel's that is not counted."""
    import mlx.core as mx
    import numpy as np

    from mlx_assay.fixtures.draw import Draw
    from mlx_assay.impl import argmax_given, executors

    logits = mx.array(Draw(1).normal(np.dtype(np.float16), (ROWS, VOCABULARY)))
    lse = mx.logsumexp(logits, axis=-1, keepdims=True)
    mx.eval(logits, lse)

    def call() -> None:
        mx.eval(argmax_given(logits, lse))

    with executors.use("host"):
        plain = _median(call)
        with executors.counted():
            counted = _median(call)
    name = "counted argmax_given, f16, 8 x 131072"
    return [
        Figure(name, 1000 * counted, "ms", "<=", 3000),
        Figure(name, counted / plain, "x uncounted", "<=", 8),
    ]


def _median(call: Callable[[], Any]) -> float:
    call()
    spent = []
    for _ in range(REPEATS):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return statistics.median(spent)
