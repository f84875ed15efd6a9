"""An infinity of x is taken for the largest number."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def plain(self, array):
        return np.clip(super().plain(array), -3.4e38, 3.4e38)


globals().update(operations(Faulty()))
