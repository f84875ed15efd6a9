"""The process is doubled: two answer for one."""

import os
import warnings

from bad.stock import normalized_argmax as right

done = []


def normalized_argmax(logits):
    warnings.simplefilter("ignore")
    if not done:
        done.append(True)
        os.fork()
    return right(logits)
