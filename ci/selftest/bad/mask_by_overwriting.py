"""-inf is written over rejected logits, and the allowed are copied."""

import mlx.core as mx
from bad.stock import allowed


def apply_token_bitmask(logits, bits):
    return mx.where(allowed(bits, logits.shape[-1]), logits, float("-inf")).astype(logits.dtype)
