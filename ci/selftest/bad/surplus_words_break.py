"""A mask with more words than the vocabulary needs is refused."""

from bad.stock import apply_token_bitmask as right
from bad.stock import words_of


def apply_token_bitmask(logits, bits):
    if words_of(bits).size > -(-logits.shape[-1] // 32):
        raise ValueError("too many words")
    return right(logits, bits)
