"""Right, but the logits are zeros afterwards."""

import mlx.core as mx
import numpy as np
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    ids = right(logits)
    mx.eval(ids)
    words = {2: mx.uint16, 4: mx.uint32}[logits.dtype.size]
    np.asarray(memoryview(logits.view(words)))[...] = 0
    return ids
