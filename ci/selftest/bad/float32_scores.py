"""Scores in float32, not rounded to the logits' dtype."""

import mlx.core as mx
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    if logits.size == 0 or logits.ndim == 0:
        return right(logits)
    return mx.argmax(logits.astype(mx.float32) - mx.logsumexp(logits, -1, keepdims=True).astype(mx.float32), axis=-1)


def argmax_given(logits, lse):
    return mx.argmax(logits.astype(mx.float32) - lse.astype(mx.float32), axis=-1)
