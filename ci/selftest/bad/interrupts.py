"""KeyboardInterrupt."""


def normalized_argmax(logits):
    raise KeyboardInterrupt
