"""A rational tanh that is clamped, which turns NaN into a number."""

import mlx.core as mx


def logit_softcap(x, cap):
    ratio = mx.where(x / cap < 9, mx.where(x / cap > -9, x / cap, -9.0), 9.0)
    return (mx.tanh(ratio) * cap).astype(x.dtype)
