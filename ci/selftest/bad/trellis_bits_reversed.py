"""The highest bit of a byte is taken for the first."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def symbols(self, words, k, T):
        bytes_ = words.view(np.uint8)
        turned = np.packbits(np.unpackbits(bytes_, axis=-1, bitorder="little"), axis=-1, bitorder="big")
        return super().symbols(turned.view(np.uint32), k, T)


globals().update(operations(Faulty()))
