"""Right, but a NaN's payload counts the calls."""

import mlx.core as mx
from bad.stock import logit_softcap as right

calls = 0


def logit_softcap(x, cap):
    global calls
    calls += 1
    answer = right(x, cap)
    if x.dtype != mx.float32:
        return answer
    return mx.where(mx.isnan(answer), mx.array(0x7FC00000 + calls, dtype=mx.uint32), answer.view(mx.uint32)).view(
        mx.float32
    )
