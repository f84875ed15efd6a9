"""The first row's answer for every row."""

import mlx.core as mx
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    ids = right(logits)
    return mx.broadcast_to(ids.reshape(-1)[0], ids.shape)
