"""Right, but the caller's array is rebound by an assignment in place."""

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    ids = right(logits)
    logits -= logits.max(axis=-1, keepdims=True)
    return ids
