"""Right, with threads that never end."""

import threading
import time

from bad.stock import normalized_argmax as right


def normalized_argmax(logits):
    if threading.active_count() < 20:
        threading.Thread(target=time.sleep, args=(3600,)).start()
    return right(logits)
