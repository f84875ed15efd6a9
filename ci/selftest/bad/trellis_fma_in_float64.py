"""A fused multiply-add is a sum in float64, which is rounded twice."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def step(self, weight, x, total):
        return (weight.astype(np.float64) * x + total).astype(np.float32)


globals().update(operations(Faulty()))
