"""A cap array is taken, where a Python number is asked for."""

import mlx.core as mx


def logit_softcap(x, cap):
    return (mx.tanh(x / cap) * cap).astype(x.dtype)
