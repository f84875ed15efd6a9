"""An exception at every call."""


def normalized_argmax(logits):
    raise ZeroDivisionError("division of nothing by nothing")
