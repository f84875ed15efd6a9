"""The bits that wrap around a block's end are those of the next block."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def before(self, symbols, back):
        return np.roll(symbols.reshape(len(symbols), -1), back, axis=-1).reshape(symbols.shape)


globals().update(operations(Faulty()))
