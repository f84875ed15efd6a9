"""The cap is cut to an integer."""

from bad.stock import logit_softcap as right


def logit_softcap(x, cap):
    return right(x, int(cap))
