"""A sieve for softcaps of float32: which results the rule of the high-precision oracle surely admits, at little cost.

`precise_softcap.interval` lets a result through where its tanh is within 5 ulp of the correctly rounded one and the
product is correctly rounded. Two sufficient conditions need no interval. `near` is the product of the float64 tanh,
rounded once: an end of neither bracket lies beyond it, so its own bits are admitted. And so are its neighbours up to
REACH where all is normal, the tanh has its 5 ulp, and the result is no larger than the cap: 5 ulp of a tanh t are at
least 2.5 ulp of t * cap, since a step of t times cap is more than half a step of the product, or 5 where the product
has just passed a power of two. The largest error of `near`, half an ulp, is taken off. A self-test holds the sieve to
the interval.
"""

from __future__ import annotations

import numpy as np

from mlx_assay.oracles.precise_softcap import SATURATION, scalar

REACH = 2
LEAST = np.float32(2.0**-100)
"""Above it quotient, tanh and product are normal numbers, whatever the cap's last places."""

PART = 1 << 15
"""Elements at a time, so that float64 stays in the cache."""

SMALLEST_NORMAL = np.float32(2.0**-126)


def admitted(x: np.ndarray, cap: float, got: np.ndarray) -> np.ndarray:
    """bool [n]: where the rule surely admits `got` for x, both float32 [n]; False says nothing.

    Nowhere for a cap that is zero, a denormal, infinite or NaN.
    """
    bound = np.float32(scalar(cap, np.dtype(np.float32)))
    sure = np.zeros(x.shape, bool)
    if not (SMALLEST_NORMAL <= abs(bound) < np.float32(np.inf)):
        return sure
    with np.errstate(all="ignore"):
        for first in range(0, x.size, PART):
            part = slice(first, first + PART)
            sure[part] = _admitted(x[part], bound, got[part])
    return sure


def _admitted(x: np.ndarray, bound: np.float32, got: np.ndarray) -> np.ndarray:
    divided = x / bound
    near = np.tanh(divided.astype(np.float64)).astype(np.float32) * bound
    sure: np.ndarray = got.view(np.uint32) == near.view(np.uint32)
    other = np.flatnonzero(~sure)
    if other.size:
        sure[other] = _close(divided[other], near[other], got[other], abs(bound))
    return sure


def _close(divided: np.ndarray, near: np.ndarray, got: np.ndarray, most: np.float32) -> np.ndarray:
    apart = np.abs(got.view(np.int32).astype(np.int64) - near.view(np.int32))
    quotient, size = np.abs(divided), np.abs(got)
    normal = (quotient >= LEAST) & (quotient < SATURATION) & (np.abs(near) >= LEAST)
    close: np.ndarray = normal & (apart <= REACH) & (size <= most)
    both_nan: np.ndarray = (got != got) & (near != near)
    close |= both_nan
    return close
