"""The softcap in high precision: x / cap, its tanh and the product, each correctly rounded to x's dtype.

The hyperbolic tangent follows Ziv's strategy: float64 first, whose value NumPy holds far closer than MARGIN; where the
margin reaches across a rounding boundary of the dtype, mpmath decides on which side the true value lies.

The rule for others, `interval`: a device conforms where its tanh is within TANH_ULPS representable values of the
correctly rounded one, in x's dtype, and the quotient and the product are correctly rounded. The Metal Shading Language
Specification promises it so (7.4, "ULP values of math functions"): division and product correctly rounded, tanh within
5 ulp in float32 and 1 ulp in float16; MLX takes bfloat16 through float32, and 5 ulp of that reach at most the
neighbour in bfloat16. Beyond that promise the tanh never leaves [-1, 1], keeps a zero and a denormal of float32 or
bfloat16 as it is (or flushes it, where the device does), and is exactly 1 from SATURATION on, where 1 - tanh is below
2.6e-14: a tanh that misses there is a public fault (BVLC/caffe#1455 and others), not an approximation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mlx_assay.oracles.fault import OracleFault, require_bits
from mlx_assay.oracles.rounding import BFLOAT16, denormal, ranks, round_once, unranked

NAME = "precise-softcap"
REQUIRES = ("mpmath", "pip install 'mlx-assay[precise]'")
FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)

MARGIN = 2.0**-44
"""Relative: 512 units in the last place of a float64, of which NumPy's tanh is at most 4 off."""

TANH_ULPS: dict[np.dtype[Any], int] = {BFLOAT16: 1, FLOAT16: 1, FLOAT32: 5}
SATURATION = 16.0


def version() -> str:
    """The release of mpmath; ImportError where it is absent."""
    import mpmath

    return str(mpmath.__version__)


def scalar(cap: float, dtype: np.dtype[Any]) -> np.ndarray:
    """A Python number as MLX makes it a scalar of a dtype: to float32 first, then to the dtype."""
    with np.errstate(all="ignore"):
        return round_once(np.asarray(np.float32(cap), np.float64), dtype)


def quotient(x: np.ndarray, cap: float) -> np.ndarray:
    """x / cap, correctly rounded: 53 bits are more than twice 24 and 2, so the detour through float64 is innocuous.

    float32 is divided as it is, since float64 has fewer than twice its 24 bits and 2 to spare for denormals.
    """
    bound = scalar(cap, x.dtype)
    with np.errstate(all="ignore"):
        if x.dtype == FLOAT32:
            return np.asarray(np.divide(x, bound))
        return round_once(np.asarray(x.astype(np.float64) / bound.astype(np.float64)), x.dtype)


def tanh(values: np.ndarray) -> np.ndarray:
    """The hyperbolic tangent, correctly rounded, like values."""
    low, high, near = _brackets(values)
    close = np.flatnonzero(low.view(f"u{values.itemsize}") != high.view(f"u{values.itemsize}"))
    for place in close:
        near.reshape(-1)[place] = _decide(
            float(values.reshape(-1)[place]), low.reshape(-1)[place], high.reshape(-1)[place]
        )
    return near


def product(bent: np.ndarray, cap: float) -> np.ndarray:
    """bent * cap, correctly rounded, like bent: the product of two significands of 24 bits is exact in float64."""
    with np.errstate(all="ignore"):
        exact = bent.astype(np.float64) * scalar(cap, bent.dtype).astype(np.float64)
    return round_once(np.asarray(exact), bent.dtype)


def logit_softcap(x: np.ndarray, cap: float) -> np.ndarray:
    """tanh(x / cap) * cap, correctly rounded after each operation, like x; cap is a Python number."""
    return product(tanh(quotient(x, cap)), cap)


compiled_logit_softcap = logit_softcap


def interval(x: np.ndarray, cap: float, flushed: bool) -> tuple[np.ndarray, np.ndarray]:
    """The ranks, int64 like x, of the least and the greatest result that the rule admits.

    Needs no mpmath: where float64 cannot tell the correctly rounded tanh, the rule spans both candidates. With
    `flushed` (a device that takes float32 denormals for zero) a zero stands beside every result for which x, the
    quotient or the result is a denormal of float32 or bfloat16.
    """
    divided = quotient(x, cap)
    low, high, near = _brackets(divided)
    reach = np.where(np.abs(divided.astype(np.float64)) >= SATURATION, 0, TANH_ULPS[x.dtype])
    if x.dtype != FLOAT16:
        reach[denormal(divided)] = 0
    one = ranks(np.ones((), x.dtype))
    sizes = np.stack([np.abs(ranks(low)), np.abs(ranks(high))])
    least, most = np.maximum(sizes.min(0) - reach, 0), np.minimum(sizes.max(0) + reach, one)
    exact = (sizes == 0).all(0)
    ends = [
        ranks(product(np.copysign(unranked(np.where(exact, 0, size), x.dtype), divided), cap)) for size in (least, most)
    ]
    if flushed and x.dtype != FLOAT16:
        gone = denormal(x) | denormal(divided) | denormal(product(near, cap))
        ends = [np.where(gone, np.minimum(ends[0], 0), ends[0]), np.where(gone, np.maximum(ends[1], 0), ends[1])]
        ends.extend(np.where(gone, 0, end) for end in tuple(ends))
    return np.minimum.reduce(ends), np.maximum.reduce(ends)


def distance(low: np.ndarray, high: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """int64, like expected: how many representable values a result may lie from it to stay inside ranks low to high.

    -1, which nothing passes, where the expected number is itself outside: an oracle may not widen its own bound.
    """
    middle = ranks(expected)
    inside = (low <= middle) & (middle <= high)
    allowed = np.where(inside, np.maximum(high - middle, middle - low), -1)
    return np.where(expected != expected, 0, allowed)


def self_test() -> None:
    """Special values, the stepwise vectors of public reports, correct rounding against mpmath; raises OracleFault."""
    for dtype in (BFLOAT16, FLOAT16, FLOAT32):
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 44.5, -89.0, 2.0**-14], dtype)
        want = np.array([0.0, -0.0, 1.0, -1.0, np.nan, 1.0, -1.0, 2.0**-14], dtype)
        require_bits(NAME, "tanh of special values", tanh(special), want)
        _test_rounding(dtype)
    for dtype, x, cap, answer in (
        (BFLOAT16, 30.0, 50.0, 27.0),
        (BFLOAT16, 100.0, 30.0, 29.875),
        (FLOAT16, 100.0, 30.0, 29.921875),
        (FLOAT32, 2.0**-140, 2.0, 2.0**-140),
        (FLOAT32, 2.0**-140, 2.0**20, 0.0),
        (FLOAT32, 1.0, 2.0**-140, 2.0**-140),
        (BFLOAT16, 2.0**-120, 2.0**-10, 2.0**-120),
        (FLOAT16, 2.0**-24, 30.0, 0.0),
        (FLOAT32, 3.0, 0.0, 0.0),
        (FLOAT32, 0.0, 0.0, np.nan),
        (FLOAT16, 1.0, 65520.0, np.nan),
    ):
        got = logit_softcap(np.array([x], dtype), cap)
        require_bits(NAME, f"softcap of {x} at cap {cap} in {dtype}", got, np.array([answer], dtype))


def _test_rounding(dtype: np.dtype[Any]) -> None:
    """The nearest of three neighbours by 300 bits of mpmath, at 64 encodings spread over what tanh bends."""
    import mpmath

    first, last = (int(ranks(np.array(bound, dtype))) for bound in (2.0**-8, 9.0))
    values = unranked(first + (np.arange(64) * (last - first)) // 63, dtype)
    got = ranks(tanh(values))
    for value, rank in zip(values, got, strict=True):
        with mpmath.workprec(300):
            true = mpmath.tanh(mpmath.mpf(float(value)))
            near = [abs(true - float(unranked(np.array(rank + step), dtype))) for step in (-1, 0, 1)]
        if near[1] != min(near):
            raise OracleFault(f"Expected tanh({float(value)}) of oracle {NAME} correctly rounded to {dtype}: it is not")


def _brackets(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The float64 tanh less its margin, more its margin, and as it is, each rounded once to the dtype of values."""
    with np.errstate(all="ignore"):
        bent = np.asarray(np.tanh(values.astype(np.float64)))
        rounded = [round_once(np.asarray(bent * factor), values.dtype) for factor in (1 - MARGIN, 1 + MARGIN, 1.0)]
    return rounded[0], rounded[1], rounded[2]


def _decide(value: float, low: Any, high: Any) -> Any:
    """Of two neighbours the one nearer to tanh(value), which is no tie: it is transcendental."""
    import mpmath

    middle = (float(low) + float(high)) / 2
    for precision in (120, 240, 480, 960):
        with mpmath.workprec(precision):
            over = mpmath.tanh(mpmath.mpf(value)) - mpmath.mpf(middle)
            if abs(over) > abs(mpmath.mpf(middle)) * mpmath.ldexp(1, 8 - precision):
                return high if (over > 0) == (float(high) > float(low)) else low
    raise OracleFault(f"Expected tanh({value.hex()}) on one side of {middle.hex()} but 960 bits could not tell")
