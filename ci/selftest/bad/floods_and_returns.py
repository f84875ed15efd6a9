"""Megabytes of output around each right answer."""

import os

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    os.write(2, b"\x1b[2Jverbose \xff\n" * 20000)
    return right(logits)
