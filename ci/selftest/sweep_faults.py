"""Implementations that are wrong for exactly one input of all."""

from __future__ import annotations

import mlx.core as mx

from mlx_assay import impl

WORD = 1 + 16384 * 65537


class Raised:
    """One encoding too large for x = 0x40004001, at any cap."""

    @staticmethod
    def compiled_logit_softcap(x: mx.array, cap: float) -> mx.array:
        right = impl.compiled_logit_softcap(x, cap)
        hit = x.view(mx.uint32) == WORD
        return (right.view(mx.uint32) + hit.astype(mx.uint32)).view(mx.float32)
