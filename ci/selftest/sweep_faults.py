"""Implementations that are wrong for exactly one input of all."""

from __future__ import annotations

import os
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay import impl

WORD = 1 + 16384 * 65537
BYTE_PLACE, BYTE, OFFSET = 2051, 0x9C, 5
LOGIT, LSE = 0x3C3F, 0x4105
STATE = 40503


class OneEncoding:
    """One encoding too large for x = 0x40004001, at any cap."""

    @staticmethod
    def compiled_logit_softcap(x: mx.array, cap: float) -> mx.array:
        right = impl.compiled_logit_softcap(x, cap)
        hit = x.view(mx.uint32) == WORD
        return (right.view(mx.uint32) + hit.astype(mx.uint32)).view(mx.float32)


class Ends:
    """The process ends."""

    @staticmethod
    def compiled_logit_softcap(x: mx.array, cap: float) -> mx.array:
        os.abort()


class OneByte:
    """The lowest bit of a byte is taken for set where it is byte 2051, has the value 0x9c, and 5 ids are left over."""

    @staticmethod
    def apply_token_bitmask(logits: mx.array, bits: np.ndarray) -> mx.array:
        words = np.array(bits)
        octets = words.view(np.uint8)
        if logits.shape[-1] % 32 == OFFSET and octets[BYTE_PLACE] == BYTE:
            octets[BYTE_PLACE] |= 1
        return impl.apply_token_bitmask(logits, words)


class OneScore:
    """The score of one logit and one lse is an encoding larger in size than it should be."""

    step = 1

    @classmethod
    def argmax_given(cls, logits: mx.array, lse: mx.array) -> mx.array:
        hit = (logits.view(mx.uint16) == LOGIT) & (lse.view(mx.uint16) == LSE)
        scores = (logits - lse).view(mx.uint16) + cls.step * hit.astype(mx.uint16)
        return mx.argmax(scores.view(mx.bfloat16), axis=-1)


class OneScoreLess(OneScore):
    """... smaller in size."""

    step = 0xFFFF


class OneState:
    """One state has the value of the next."""

    @staticmethod
    def trellis_decode(codes: mx.array, scales: Any, *rest: Any) -> mx.array:
        right = impl.trellis_decode(codes, scales, *rest)
        states = impl.trellis_decode(codes, None, *rest[:-2], 4, None)
        return mx.where(states == STATE, right + 1, right)
