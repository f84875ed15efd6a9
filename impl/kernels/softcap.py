"""Gemma's logit softcap, tanh(x / cap) * cap, as one fused kernel and as three operations.

The two are apart on purpose: a compiled graph and its separate operations are different kernels on a GPU, and mlx-lm
uses both (gemma4_text and gemma3n compile it, gemma2 does not). Neither stands in for the other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache

import mlx.core as mx

DTYPES = (mx.bfloat16, mx.float16, mx.float32)


def compiled_logit_softcap(x: mx.array, cap: float) -> mx.array:
    """tanh(x / cap) * cap in one compiled, shapeless graph, as mlx-lm's gemma4_text has it.

    One closure a cap, kept for later calls, in which the cap is a constant of x's dtype.

    Args:
        x: bf16, f16 or f32 of any shape, empty and 0-d included.
        cap: a Python number; zero, infinities, NaN and negative numbers give what the arithmetic gives.

    Returns:
        Like x, rounded to its dtype after each of the three operations.

    Raises:
        TypeError: for a cap that is no Python number, or x of another dtype.
    """
    number = _number(x, cap)
    # MLX 0.32.4's CUDA back end ends the process where a compiled graph has no element to compute.
    return _closure(struct.pack("<d", number))(x) if x.size else _softcap(x, number)


def logit_softcap(x: mx.array, cap: float) -> mx.array:
    """tanh(x / cap) * cap as three separate operations, as mlx-lm's gemma2 has it; see compiled_logit_softcap."""
    return _softcap(x, _number(x, cap))


def _number(x: mx.array, cap: float) -> float:
    if not isinstance(cap, int | float) or isinstance(cap, bool):
        raise TypeError(f"Expected cap as a Python number but got {type(cap).__name__}: use float(cap) or cap.item()")
    if x.dtype not in DTYPES:
        raise TypeError(f"Expected x of bfloat16, float16 or float32 but got {x.dtype}: use astype")
    return float(cap)


def _softcap(x: mx.array, cap: float) -> mx.array:
    constant = mx.array(cap, x.dtype)
    return mx.tanh(x / constant) * constant


@lru_cache(maxsize=256)
def _closure(cap: bytes) -> Callable[[mx.array], mx.array]:
    """The compiled graph of one cap, by its bits: every NaN and both zeros are keys of their own."""
    (number,) = struct.unpack("<d", cap)

    def softcap(x: mx.array) -> mx.array:
        return _softcap(x, number)

    compiled: Callable[[mx.array], mx.array] = mx.compile(softcap, shapeless=True)
    return compiled
