"""The last elements of a row that fill no word of the mask are left zero."""

import mlx.core as mx
from bad.stock import apply_token_bitmask as right


def apply_token_bitmask(logits, bits):
    vocabulary = logits.shape[-1]
    return mx.where(mx.arange(vocabulary) < vocabulary // 32 * 32, right(logits, bits), 0).astype(logits.dtype)
