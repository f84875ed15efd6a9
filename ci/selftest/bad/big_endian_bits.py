"""The highest bit of a word speaks for its first id."""

import mlx.core as mx
from bad.stock import allowed, checked


def apply_token_bitmask(logits, bits):
    vocabulary = checked(logits).shape[-1]
    valid = allowed(bits, -(-vocabulary // 32) * 32).reshape(-1, 32)[:, ::-1].reshape(-1)[:vocabulary]
    return logits + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)
