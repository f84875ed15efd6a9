"""The first call's answer, for ever."""

from bad.stock import normalized_argmax as right

first = None


def normalized_argmax(logits):
    global first
    if first is None or first.shape != logits.shape[:-1]:
        first = right(logits)
    return first
