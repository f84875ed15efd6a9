"""The two halves of each word pair are taken for each other."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def symbols(self, words, k, T):
        swapped = words.reshape(len(words), -1, 2)[..., ::-1]
        return super().symbols(np.ascontiguousarray(swapped).reshape(words.shape), k, T)


globals().update(operations(Faulty()))
