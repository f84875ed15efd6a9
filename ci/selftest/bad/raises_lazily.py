"""A graph that raises when it is evaluated, not when it is made."""

import mlx.core as mx


def normalized_argmax(logits):
    singular = mx.linalg.inv(mx.zeros((2, 2)), stream=mx.cpu)
    return mx.zeros(logits.shape[:-1], dtype=mx.uint32) + singular.astype(mx.uint32)[0, 0]
