"""One encoding of all is one unit in the last place too large."""

import mlx.core as mx
from bad.stock import logit_softcap as right


def logit_softcap(x, cap):
    answer = right(x, cap)
    if x.dtype.size != 2:
        return answer
    bits = answer.view(mx.uint16)
    return mx.where(x.view(mx.uint16) == 0x4123, bits + 1, bits).view(x.dtype)
