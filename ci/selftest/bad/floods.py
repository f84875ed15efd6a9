"""Output without an end."""

import os


def normalized_argmax(logits):
    while True:
        os.write(1, b"all is well\n" * 4096)
