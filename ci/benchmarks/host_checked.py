"""What the checker costs: the argmax kernel on one core."""

from __future__ import annotations

from argmax_call import NAME, arguments, median
from figure import Figure

REPEATS = 7


def measure() -> list[Figure]:
    """Medians of processor time, as multiples of the unchecked kernel's."""
    import mlx.core as mx

    from mlx_assay.impl import argmax_given, executors
    from mlx_assay.impl.executors.checker import checked

    logits, lse = arguments()

    def call() -> None:
        mx.eval(argmax_given(logits, lse))

    with executors.use("host"):
        unchecked = median(call, REPEATS)
        with checked(schedules=["in-order"], poisons=[0xFFDEFFDE]):
            one = median(call, REPEATS)
        with checked():
            every = median(call, REPEATS)
    return [
        Figure(f"checked {NAME}, one schedule", one / unchecked, "x unchecked", "<=", 8),
        Figure(f"checked {NAME}, four schedules", every / unchecked, "x unchecked", "<=", 8),
    ]
