"""The call that benchmarks of the host executor measure: the argmax kernel, float16, 8 rows of 131,072 logits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import mlx.core as mx

ROWS, VOCABULARY = 8, 131_072
NAME = "argmax_given, f16, 8 x 131072"


def arguments() -> tuple[mx.array, mx.array]:
    """Logits and their logsumexp, evaluated."""
    import mlx.core as mx
    import numpy as np

    from mlx_assay.fixtures.draw import Draw

    logits = mx.array(Draw(1).normal(np.dtype(np.float16), (ROWS, VOCABULARY)))
    lse = mx.logsumexp(logits, axis=-1, keepdims=True)
    mx.eval(logits, lse)
    return logits, lse


def median(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of processor time that a call takes once it has been made."""
    call()
    spent = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return statistics.median(spent)
