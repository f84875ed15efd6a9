"""The result is cut to its dtype, not rounded."""

import numpy as np
from bad.trellis_stock import Trellis, operations


class Faulty(Trellis):
    def rounded(self, values, dtype):
        kept = {"bfloat16": 0xFFFF0000, "float16": 0xFFFFE000, "float32": 0xFFFFFFFF}[dtype]
        cut = (values.view(np.uint32) & np.uint32(kept)).view(np.float32)
        return super().rounded(np.where(np.isnan(values), values, cut), dtype)


globals().update(operations(Faulty()))
