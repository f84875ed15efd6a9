"""The first row's normaliser for every row."""

import mlx.core as mx


def argmax_given(logits, lse):
    return mx.argmax(logits - lse.reshape(-1)[0], axis=-1)
