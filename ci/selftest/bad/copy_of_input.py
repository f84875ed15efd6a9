"""The input itself, untouched."""


def apply_token_bitmask(logits, bits):
    return logits


def logit_softcap(x, cap):
    return x


compiled_logit_softcap = logit_softcap
