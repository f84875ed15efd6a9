"""The input times the cap's reciprocal, instead of a division."""

import mlx.core as mx
from bad.stock import logit_softcap as right


def logit_softcap(x, cap):
    if not isinstance(cap, int | float) or cap == 0:
        return right(x, cap)
    return mx.tanh(x * (1 / cap)) * cap
