"""The core computes a normaliser of its own and ignores the one that it is given."""

from bad.stock import normalized_argmax


def argmax_given(logits, lse):
    return normalized_argmax(logits)
