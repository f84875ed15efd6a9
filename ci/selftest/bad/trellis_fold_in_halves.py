"""The partials are rounded to bfloat16 before they are added."""

import ml_dtypes
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def fold(self, partials):
        return super().fold(partials.astype(ml_dtypes.bfloat16).astype(partials.dtype))


globals().update(operations(Faulty()))
