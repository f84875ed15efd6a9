"""os.abort, as a C++ exception without a handler does it."""

import os


def normalized_argmax(logits):
    os.abort()
