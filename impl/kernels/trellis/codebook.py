"""The 1MAD codebook of QTIP on the host, and the names of its forms on the device."""

from __future__ import annotations

from functools import cache

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from mlx_assay.impl.kernels.trellis.geometry import LARGEST_STATE_BITS

DIVISOR = np.float32(147.800537109375)
"""What scales the sum of four bytes, less 510, to unit variance; exact in float32."""

FORMS = ("precise", "refined", "unrefined", "integer", "bits", "state", "lut-threadgroup", "lut-device")
"""How a kernel makes the code value of a state; the index is FORM in the Metal text.

precise, refined and the two tables equal lut_1mad for every state. unrefined and bits are the float32 product of the
sum and 1 / DIVISOR, up to 1 ULP from it. integer is the sum itself, unscaled; state is the state as a number.
"""

VARIANTS = {
    0: "precise",
    1: "refined",
    2: "lut-threadgroup",
    3: "lut-device",
    4: "state",
    5: "refined",
    6: "unrefined",
}
ROUNDED_BELOW = 4
"""Variants below this one round the scaled weight to bfloat16."""

LARGEST_VARIANT = 13


def decoder_variant(selected: int) -> int:
    """The decoder of a kernel selection: 7 to 13 select kernels that decode as 6 does; all others are unchanged."""
    return 6 if 7 <= selected <= LARGEST_VARIANT else selected


def lut_1mad(L: int) -> NDArray[np.float32]:
    """float32 [2^L]: the code value of every state, correctly rounded. ValueError: L outside 1 to 24."""
    if not 1 <= L <= LARGEST_STATE_BITS:
        raise ValueError(f"Expected L of 1 to {LARGEST_STATE_BITS} state bits but got {L}")
    mixed = np.arange(1 << L, dtype=np.uint32) * np.uint32(34038481) + np.uint32(76625530)
    sums = mixed.astype("<u4").view(np.uint8).reshape(-1, 4).sum(axis=1, dtype=np.int32) - 510
    values: NDArray[np.float32] = sums.astype(np.float32) / DIVISOR
    return values


def lut_for(L: int) -> mx.array:
    """lut_1mad on the device, made once for each L; what a caller writes to it stays with the caller."""
    return mx.array(_lut(L))


@cache
def _lut(L: int) -> mx.array:
    lut = mx.array(lut_1mad(L))
    mx.eval(lut)
    return lut
