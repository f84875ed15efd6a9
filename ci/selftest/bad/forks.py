"""Right, with a doubled process that lives on and holds every descriptor."""

import os
import time
import warnings

from bad.stock import normalized_argmax as right

done = []


def normalized_argmax(logits):
    warnings.simplefilter("ignore")
    if not done:
        done.append(True)
        if os.fork() == 0:
            time.sleep(3600)
    return right(logits)
