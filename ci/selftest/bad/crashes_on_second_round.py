"""Right at first, a crash once a subcase comes again."""

import os

from bad.stock import normalized_argmax as right

seen = set()


def normalized_argmax(logits):
    ids = right(logits)
    key = (str(logits.tolist()), tuple(logits.shape))
    if key in seen:
        os.abort()
    seen.add(key)
    return ids
