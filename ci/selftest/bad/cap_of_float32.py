"""The cap is a float32 array, so that the answer is float32 too."""

import mlx.core as mx


def logit_softcap(x, cap):
    scalar = mx.array(float(cap), dtype=mx.float32)
    return mx.tanh(x / scalar) * scalar
