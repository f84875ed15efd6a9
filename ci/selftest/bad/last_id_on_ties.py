"""The last id of the largest score."""

import mlx.core as mx
from bad.stock import scores


def _last(values):
    count = values.shape[-1]
    backwards = mx.argmax(values[..., ::-1], axis=-1)
    return (count - 1 - backwards.astype(mx.int32)).astype(mx.uint32)


def normalized_argmax(logits):
    return _last(scores(logits))


def argmax_given(logits, lse):
    return _last(logits - lse)
