"""All in float32, rounded once at the end."""

import mlx.core as mx
from bad.stock import logit_softcap as right


def logit_softcap(x, cap):
    return right(x.astype(mx.float32), cap).astype(x.dtype)
