"""The bit is tested by `word & (1 << 31) > 0`, which is negative in int32."""

import mlx.core as mx
from bad.stock import checked, words_of


def apply_token_bitmask(logits, bits):
    vocabulary = checked(logits).shape[-1]
    words = words_of(bits)
    count = -(-vocabulary // 32)
    words = mx.concatenate([words[:count], mx.zeros(max(0, count - words.size), dtype=mx.int32)])
    valid = ((words[:, None] & (mx.array(1, dtype=mx.int32) << mx.arange(32))) > 0).reshape(-1)[:vocabulary]
    return logits + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)
