"""The words of a strided mask are read from memory as if they lay side by side."""

import numpy as np
from bad.stock import apply_token_bitmask as right


def apply_token_bitmask(logits, bits):
    if isinstance(bits, np.ndarray) and bits.ndim == 1 and bits.size and bits.strides[0] > bits.itemsize:
        bits = np.array(np.lib.stride_tricks.as_strided(bits, strides=(bits.itemsize,)))
    return right(logits, bits)
