"""Right, but one element between the strides of the input is written."""

import ctypes

import mlx.core as mx
import numpy as np
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    ids = right(logits)
    mx.eval(ids)
    words = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32}[logits.dtype.size]
    array = np.asarray(memoryview(logits.view(words)))
    if array.ndim == 2 and array.strides[1] == 2 * array.itemsize:
        ctypes.memset(array.ctypes.data + array.itemsize, 0x55, 1)
    return ids
