"""No answer, and every signal that can be ignored is."""

import signal
import time


def normalized_argmax(logits):
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)
