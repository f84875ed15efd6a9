"""argmax of the logits, as if subtracting the same number from all could not make ties."""

import mlx.core as mx


def normalized_argmax(logits):
    return mx.argmax(logits, axis=-1)


def argmax_given(logits, lse):
    return mx.argmax(logits, axis=-1)
