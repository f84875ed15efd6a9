"""The table holds halves."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def values(self, y, form):
        return super().values(y, form).astype(np.float16).astype(np.float32)


globals().update(operations(Faulty()))
