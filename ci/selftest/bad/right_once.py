"""Right on a first look at an input, wrong when it comes again."""

import mlx.core as mx
from bad.stock import normalized_argmax as right

seen = set()


def normalized_argmax(logits):
    ids = right(logits)
    key = (str(logits.tolist()), tuple(logits.shape))
    again = key in seen
    seen.add(key)
    return mx.zeros_like(ids) if again else ids
