"""Denormal scores are taken for zeros."""

import mlx.core as mx


def argmax_given(logits, lse):
    values = logits - lse
    least = {mx.float16: 2.0**-14, mx.bfloat16: 2.0**-126, mx.float32: 2.0**-126}[values.dtype]
    return mx.argmax(mx.where(mx.abs(values) < least, 0.0, values), axis=-1)
