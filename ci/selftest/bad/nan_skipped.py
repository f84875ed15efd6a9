"""NaN loses to every number, as it did before MLX 0.32.3."""

import mlx.core as mx
from bad.stock import scores


def _skipping(values):
    return mx.argmax(mx.where(mx.isnan(values), float("-inf"), values), axis=-1)


def normalized_argmax(logits):
    return _skipping(scores(logits))


def argmax_given(logits, lse):
    return _skipping(logits - lse)
