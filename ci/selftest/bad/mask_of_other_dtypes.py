"""Words of any dtype are cast instead of refused."""

import numpy as np
from bad.stock import apply_token_bitmask as right


def apply_token_bitmask(logits, bits):
    return right(logits, np.asarray(bits).astype(np.int32))
