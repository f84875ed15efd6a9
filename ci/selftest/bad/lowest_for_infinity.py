"""The lowest finite number in place of -inf."""

import mlx.core as mx
from bad.stock import allowed


def apply_token_bitmask(logits, bits):
    least = mx.finfo(logits.dtype).min
    return mx.where(allowed(bits, logits.shape[-1]), logits + 0, least).astype(logits.dtype)
