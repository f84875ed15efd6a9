"""The hash is not taken modulo 2^32, and all its bytes count."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def sums(self, L):
        mixed = np.arange(1 << L, dtype=np.uint64) * np.uint64(34038481) + np.uint64(76625530)
        return mixed[:, None].view(np.uint8).reshape(1 << L, 8).sum(1) - 510.0


globals().update(operations(Faulty()))
