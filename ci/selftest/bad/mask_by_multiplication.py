"""The logits times 1 or infinity's sign, instead of a sum."""

import mlx.core as mx
from bad.stock import allowed


def apply_token_bitmask(logits, bits):
    valid = allowed(bits, logits.shape[-1])
    return mx.where(valid, logits * 1, -mx.abs(logits) * float("inf")).astype(logits.dtype)
