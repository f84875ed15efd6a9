"""Split s has the rows s, s + 128, and so on."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def rows_of(self, count):
        return [
            (np.arange(min(128, count - first)), np.arange(first, min(count, first + 128)))
            for first in range(0, count, 128)
        ]


globals().update(operations(Faulty()))
