"""A read at address zero."""

import ctypes


def normalized_argmax(logits):
    ctypes.string_at(0)
