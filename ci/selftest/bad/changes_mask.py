"""Right, but the mask's first word is taken from its owner."""

import numpy as np
from bad.stock import apply_token_bitmask as right


def apply_token_bitmask(logits, bits):
    masked = right(logits, bits)
    if isinstance(bits, np.ndarray) and bits.dtype == np.int32:
        bits[..., 0] ^= 1
    return masked
