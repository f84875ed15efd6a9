"""No answer, ever."""

import time


def normalized_argmax(logits):
    while True:
        time.sleep(60)
