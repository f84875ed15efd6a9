"""Memory is read as if it were row contiguous, wherever that stays inside of the buffer."""

import mlx.core as mx
import numpy as np
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    if logits.ndim != 2 or logits.size == 0:
        return right(logits)
    words = {2: mx.uint16, 4: mx.uint32, 1: mx.uint8}[logits.dtype.size]
    array = np.asarray(memoryview(logits.view(words)))
    reach = sum((extent - 1) * stride for extent, stride in zip(array.shape, array.strides, strict=True))
    if min(array.strides) <= 0 or reach < (array.size - 1) * array.itemsize:
        return right(logits)
    wide = (array.shape[1] * array.itemsize, array.itemsize)
    flat = np.lib.stride_tricks.as_strided(array, strides=wide)
    return right(mx.array(np.array(flat)).view(logits.dtype))
