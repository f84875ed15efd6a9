"""SIGKILL to itself, as the system does when memory runs out."""

import os
import signal


def normalized_argmax(logits):
    os.kill(os.getpid(), signal.SIGKILL)
