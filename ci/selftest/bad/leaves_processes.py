"""Right, with a process that outlives the call and holds every descriptor."""

import subprocess

from bad.stock import normalized_argmax as right

started = []


def normalized_argmax(logits):
    if not started:
        started.append(subprocess.Popen(["sleep", "3600"], close_fds=False))
    return right(logits)
