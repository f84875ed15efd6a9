"""The mask's words are read when the answer is evaluated, not when it is asked for."""

import ctypes
import sys

import mlx.core as mx
import numpy as np
from bad.stock import apply_token_bitmask as right


def _bits(array):
    return np.asarray(memoryview(array.view({2: mx.uint16, 4: mx.uint32}[array.dtype.size])))


def apply_token_bitmask(logits, bits):
    masked = right(logits, bits)
    mx.eval(masked)
    target = _bits(masked)

    def later(frame, event, thing):
        if event == "call" and frame.f_code.co_name == "deliver":
            sys.setprofile(None)
            again = right(logits, bits)
            mx.eval(again)
            source = np.ascontiguousarray(_bits(again))
            ctypes.memmove(target.ctypes.data, source.ctypes.data, source.nbytes)

    sys.setprofile(later)
    return masked
