"""Ids for which the mask has no word are allowed."""

import mlx.core as mx
from bad.stock import allowed, words_of
from bad.stock import apply_token_bitmask as right


def apply_token_bitmask(logits, bits):
    if logits.size == 0 or logits.ndim == 0:
        return right(logits, bits)
    vocabulary, covered = logits.shape[-1], words_of(bits).size * 32
    valid = mx.where(mx.arange(vocabulary) < covered, allowed(bits, vocabulary), True)
    return logits + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)
