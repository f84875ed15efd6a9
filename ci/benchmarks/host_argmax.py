"""The argmax kernel under the host executor, on one core."""

from __future__ import annotations

from argmax_call import NAME, arguments, median
from figure import Figure

REPEATS = 9


def measure() -> list[Figure]:
    """Median milliseconds of processor time, of the kernel alone (lse given) and with the native logsumexp."""
    import mlx.core as mx

    from mlx_assay.impl import argmax_given, executors, normalized_argmax

    logits, lse = arguments()
    with executors.use("host"):
        kernel = 1000 * median(lambda: mx.eval(argmax_given(logits, lse)), REPEATS)
        whole = 1000 * median(lambda: mx.eval(normalized_argmax(logits)), REPEATS)
    stock = 1000 * median(
        lambda: mx.eval(mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)), REPEATS
    )
    return [
        Figure(f"host {NAME}", kernel, "ms", "<=", 100),
        Figure("host normalized_argmax, f16, 8 x 131072", whole, "ms"),
        Figure("MLX's own expression on this CPU", stock, "ms"),
        Figure("host argmax_given beside that, times", kernel / stock, "", "<=", 3),
    ]
