"""A line without an end, written to every descriptor that is open."""

import contextlib
import os

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"x" * (1 << 22))
    return right(logits)
