"""+0 beats an earlier -0, as a comparison of bits has it."""

import mlx.core as mx


def argmax_given(logits, lse):
    values = (logits - lse).astype(mx.float32)
    bits = values.view(mx.int32)
    ordered = mx.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    ordered = mx.where(mx.isnan(values), 0x7FFFFFFF, ordered)
    return mx.argmax(ordered, axis=-1)
