"""The right answer in a tuple."""

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    return (right(logits),)
