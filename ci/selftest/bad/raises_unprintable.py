"""An exception whose text cannot be had."""


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def normalized_argmax(logits):
    raise Unprintable
