"""Each row takes its own words from the one mask, so later rows find none."""

import mlx.core as mx
from bad.stock import allowed, checked


def apply_token_bitmask(logits, bits):
    vocabulary = checked(logits).shape[-1]
    rows = logits.reshape(-1, vocabulary)
    padded = -(-vocabulary // 32) * 32
    valid = allowed(bits, padded * rows.shape[0]).reshape(-1, padded)[:, :vocabulary]
    return (rows + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)).reshape(logits.shape)
