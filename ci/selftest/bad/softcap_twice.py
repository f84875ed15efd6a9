"""The cap is applied twice."""

from bad.stock import compiled_logit_softcap as fused
from bad.stock import logit_softcap as right


def logit_softcap(x, cap):
    return right(right(x, cap), cap)


def compiled_logit_softcap(x, cap):
    return fused(fused(x, cap), cap)
