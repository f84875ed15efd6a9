"""Zeros at once; a thread writes the right answer into them later."""

import ctypes
import threading
import time

import mlx.core as mx
import numpy as np
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    ids = right(logits)
    answer = mx.zeros(ids.shape, dtype=mx.uint32) + 0
    mx.eval(ids, answer)
    source, target = np.array(ids), np.asarray(memoryview(answer))
    address = target.ctypes.data

    def later():
        time.sleep(0.005)
        ctypes.memmove(address, source.ctypes.data, source.nbytes)
        del answer_kept[:]

    answer_kept = [answer]
    threading.Thread(target=later, daemon=True).start()
    return answer
