"""Zeros of the right shape, whatever the input."""

import mlx.core as mx


def normalized_argmax(logits):
    return mx.zeros(logits.shape[:-1], dtype=mx.uint32)


def argmax_given(logits, lse):
    return normalized_argmax(logits)


def apply_token_bitmask(logits, bits):
    return mx.zeros_like(logits)


def logit_softcap(x, cap):
    return mx.zeros_like(x)


compiled_logit_softcap = logit_softcap
