"""The bytes of a word are taken in the other order."""

import mlx.core as mx
from bad.stock import allowed, checked


def apply_token_bitmask(logits, bits):
    vocabulary = checked(logits).shape[-1]
    valid = allowed(bits, -(-vocabulary // 32) * 32).reshape(-1, 4, 8)[:, ::-1].reshape(-1)[:vocabulary]
    return logits + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)
