"""A Python number where a scalar array is due."""

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    return right(logits).tolist()
