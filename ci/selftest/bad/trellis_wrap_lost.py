"""The bits that wrap around a block's end are zero."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def before(self, symbols, back):
        shifted = np.roll(symbols, back, axis=-1)
        shifted[..., :back] = 0
        return shifted


globals().update(operations(Faulty()))
