"""An arithmetic shift that is not masked: a word with the sign bit allows every id."""

import mlx.core as mx
from bad.stock import checked, words_of


def apply_token_bitmask(logits, bits):
    vocabulary = checked(logits).shape[-1]
    words = words_of(bits)
    count = -(-vocabulary // 32)
    words = mx.concatenate([words[:count], mx.zeros(max(0, count - words.size), dtype=mx.int32)])
    shifted = words[:, None] >> mx.arange(32)
    valid = ((shifted & 1) | (shifted < 0)).reshape(-1)[:vocabulary] != 0
    return logits + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)
