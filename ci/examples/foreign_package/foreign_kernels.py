"""Kernels of XGrammar and mlx-lm under the names and arguments of the contracts.

An implementation is a module with functions of the operations' names. What a contract asks beyond the package's own
promise, such as the kind of an exception, is done here; the numbers are the package's.
"""

import mlx.core as mx
import numpy as np

DTYPES = (mx.bfloat16, mx.float16, mx.float32)


def apply_token_bitmask(logits, bits):
    """xgrammar.kernels.apply_token_bitmask_mlx: logits [..., V] plus 0 or -inf, by int32 words of 32 ids each."""
    from xgrammar.kernels.apply_token_bitmask_mlx import apply_token_bitmask_mlx

    if logits.dtype not in DTYPES or logits.ndim == 0 or logits.size == 0:
        raise ValueError(f"Expected float logits [..., V] but got {logits.dtype} of shape {logits.shape}")
    vocabulary = logits.shape[-1]
    return apply_token_bitmask_mlx(_words(bits, -(-vocabulary // 32)), logits, vocabulary)


def compiled_logit_softcap(x, cap):
    """mlx_lm.models.gemma4_text.logit_softcap: tanh(x / cap) * cap, compiled."""
    from mlx_lm.models.gemma4_text import logit_softcap

    if isinstance(cap, bool) or not isinstance(cap, (int, float)):
        raise TypeError(f"Expected cap as a number but got {type(cap).__name__}")
    if x.dtype not in DTYPES:
        raise TypeError(f"Expected x of bfloat16, float16 or float32 but got {x.dtype}")
    # mx.compile may take an integer for the float of the same bits.
    return logit_softcap(float(cap), x)


def _words(bits, count):
    """Exactly `count` int32 words, zeros where there are fewer: the package wants them all."""
    if str(getattr(bits, "dtype", "")).rpartition(".")[2] != "int32":
        raise TypeError(f"Expected bits as an array of int32 but got {type(bits).__name__}")
    given = np.asarray(bits)
    if given.ndim != 1:
        raise ValueError(f"Expected bits [words] but got shape {given.shape}")
    words = np.zeros(count, np.int32)
    words[: given.size] = given[:count]
    return mx.array(words)
