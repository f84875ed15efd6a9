"""Bad input raises, but not what is promised."""

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    if logits.ndim == 0 or logits.size == 0:
        raise KeyError("logits")
    return right(logits)
