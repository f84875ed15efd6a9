"""The argmax kernel under the host executor: float16, 8 rows of 131,072 logits, one core."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from figure import Figure

ROWS, VOCABULARY = 8, 131_072
REPEATS = 9


def measure() -> list[Figure]:
    """Median milliseconds of processor time, of the kernel alone (lse given) and with the native logsumexp."""
    import mlx.core as mx
    import numpy as np

    from mlx_assay.fixtures.draw import Draw
    from mlx_assay.impl import argmax_given, executors, normalized_argmax

    logits = mx.array(Draw(1).normal(np.dtype(np.float16), (ROWS, VOCABULARY)))
    lse = mx.logsumexp(logits, axis=-1, keepdims=True)
    mx.eval(logits, lse)
    with executors.use("host"):
        kernel = _median(lambda: mx.eval(argmax_given(logits, lse)))
        whole = _median(lambda: mx.eval(normalized_argmax(logits)))
    stock = _median(lambda: mx.eval(mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)))
    return [
        Figure("host argmax_given, f16, 8 x 131072", kernel, "ms", "<=", 100),
        Figure("host normalized_argmax, f16, 8 x 131072", whole, "ms"),
        Figure("MLX's own expression on this CPU", stock, "ms"),
        Figure("host argmax_given beside that, times", kernel / stock, "", "<=", 3),
    ]


def _median(call: Callable[[], Any]) -> float:
    call()
    spent = []
    for _ in range(REPEATS):
        began = time.process_time()
        call()
        spent.append(1000 * (time.process_time() - began))
    return statistics.median(spent)
