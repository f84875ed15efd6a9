"""Every descriptor is closed."""

import os

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    os.closerange(3, 256)
    return right(logits)
