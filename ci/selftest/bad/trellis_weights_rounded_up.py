"""Stored weights are rounded to bfloat16 with ties away from zero."""

import mlx.core as mx
import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def trellis_decode(self, *call):
        *others, variant, form = call
        weights = np.array(super().trellis_decode(*others, 5 if variant < 4 else variant, form))
        if variant < 4 and call[1] is not None:
            weights = ((weights.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)
        return mx.array(weights)


globals().update(operations(Faulty()))
