"""Bad input gives an answer instead of an error."""

import mlx.core as mx
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    if logits.ndim == 0 or logits.size == 0:
        return mx.zeros(logits.shape[:-1], dtype=mx.uint32)
    return right(logits)
