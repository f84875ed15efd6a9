"""Adding zero at the end turns -0 into +0."""

from bad.stock import logit_softcap as right


def logit_softcap(x, cap):
    return right(x, cap) + 0
