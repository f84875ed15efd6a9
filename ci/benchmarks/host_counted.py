"""What counting costs: the argmax kernel on one core."""

from __future__ import annotations

from argmax_call import NAME, arguments, median
from figure import Figure

REPEATS = 7


def measure() -> list[Figure]:
    """Medians of processor time: milliseconds, and as a multiple of the kernel's that is not counted."""
    import mlx.core as mx

    from mlx_assay.impl import argmax_given, executors

    logits, lse = arguments()

    def call() -> None:
        mx.eval(argmax_given(logits, lse))

    with executors.use("host"):
        plain = median(call, REPEATS)
        with executors.counted():
            counted = median(call, REPEATS)
    return [
        Figure(f"counted {NAME}", 1000 * counted, "ms", "<=", 3000),
        Figure(f"counted {NAME}", counted / plain, "x uncounted", "<=", 8),
    ]
