"""The two blocks of an interleaved pair are taken for each other."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def words(self, codes, pairs):
        return super().words(np.roll(codes, 24, axis=-1) if pairs else codes, pairs)


globals().update(operations(Faulty()))
