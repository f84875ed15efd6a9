"""The right answer as a NumPy array."""

import numpy as np
from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    return np.array(right(logits))
