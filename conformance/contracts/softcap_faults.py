"""Ways in which a softcap goes wrong, and places where it may: for a diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.contract import Arguments
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import denormal

FLOAT32 = np.dtype(np.float32)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DIGITS = 7
SATURATED = 9.0
Make = Callable[[], np.ndarray]


def _stock(x: np.ndarray, cap: float) -> np.ndarray:
    capped: np.ndarray = load("stock_mlx").logit_softcap(x, cap)
    return capped


def _rounded(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray:
    return np.asarray(values.astype(FLOAT32).astype(dtype))


class _Call:
    """x and cap, and the steps on the way, each rounded to x's dtype."""

    def __init__(self, arguments: Arguments) -> None:
        self.x, self.cap = arguments["x"], float(arguments["cap"])
        self.dtype = self.x.dtype
        reference = load("numpy_reference")
        self.bound = reference.scalar(self.cap, self.dtype).astype(FLOAT32)
        self.quotient = reference.softcap_steps(self.x, self.cap)[0]

    def times(self, bent: np.ndarray) -> np.ndarray:
        return _rounded(bent.astype(FLOAT32) * self.bound, self.dtype)

    def once(self) -> np.ndarray:
        return _rounded(_stock(self.x.astype(FLOAT32), self.cap), self.dtype)

    def cut(self) -> np.ndarray:
        wide = _stock(self.x.astype(FLOAT32), self.cap)
        return _rounded((wide.view(np.uint32) & np.uint32(0xFFFF0000)).view(FLOAT32), self.dtype)

    def doubled(self) -> np.ndarray:
        exact = np.tanh(self.x.astype(np.float64) / self.cap) * self.cap
        return _rounded(exact, self.dtype)

    def reciprocal(self) -> np.ndarray:
        factor = np.asarray(1 / self.cap if self.cap else np.inf, FLOAT32).astype(self.dtype).astype(FLOAT32)
        return self.times(_stock(_rounded(self.x.astype(FLOAT32) * factor, self.dtype), 1.0))

    def exponentials(self) -> np.ndarray:
        """(e^2q - 1) / (e^2q + 1), each step rounded."""
        dtype = self.dtype
        grown = _rounded(np.exp(_rounded(2 * self.quotient.astype(FLOAT32), dtype).astype(FLOAT32)), dtype)
        less, more = (_rounded(grown.astype(FLOAT32) + one, dtype).astype(FLOAT32) for one in (-1, 1))
        return self.times(_rounded(less / more, dtype))

    def clamped(self) -> np.ndarray:
        """tanh of what comparisons keep within a range, which makes a number of NaN."""
        wide = self.quotient.astype(FLOAT32)
        kept = np.where(wide < SATURATED, np.where(wide > -SATURATED, wide, -SATURATED), SATURATED)
        return self.times(_stock(_rounded(kept, self.dtype), 1.0))

    def by_way_of(self, dtype: np.dtype[Any]) -> np.ndarray:
        return _rounded(_stock(_rounded(self.x.astype(FLOAT32), dtype), self.cap), self.dtype)


BROKEN = {
    **dict.fromkeys(("the cap as a whole number", "the cap's first"), 1),
    **dict.fromkeys(
        ("no rounding", "a result cut", "the softcap applied twice", "a clamp in place", "no product", "no division",
         "float64", "x rounded"), 2),
    **dict.fromkeys(("the reciprocal", "tanh by a ratio"), 4),
    **dict.fromkeys(("+0 for -0", "x is a zero", "the tanh is saturated"), 5),
    **dict.fromkeys(("a clamped tanh", "x is NaN", "x is infinite"), 6),
    **dict.fromkeys(("x is a denormal", "x / cap is a denormal"), 9),
    "": 2,
}  # fmt: skip
"""Rules by what breaks them."""


def suspects(arguments: Arguments) -> Mapping[str, Make]:
    """Wrong outputs by name, like x each."""
    call = _Call(arguments)
    x, cap, wide = call.x, call.cap, call.x.astype(FLOAT32)
    found: dict[str, Make] = {}
    if call.dtype != FLOAT32:
        found["no rounding between the operations"] = call.once
        found["a result cut to bfloat16, not rounded,"] = call.cut
    found["the reciprocal of the cap"] = call.reciprocal
    found["the softcap applied twice"] = lambda: _stock(_stock(x, cap), cap)
    if np.isfinite(cap):
        found["the cap as a whole number"] = lambda: _stock(x, float(int(cap)))
        found[f"the cap's first {DIGITS} digits"] = lambda: _stock(x, float(f"{cap:.{DIGITS}g}"))
    found["tanh by a ratio of exponentials"] = call.exponentials
    found["a clamped tanh"] = call.clamped
    found["a clamp in place of tanh"] = lambda: _rounded(np.clip(wide, -abs(call.bound), abs(call.bound)), call.dtype)
    found["no product with the cap"] = lambda: _stock(call.quotient, 1.0)
    found["no division by the cap"] = lambda: call.times(_stock(x, 1.0))
    found["float64 throughout"] = call.doubled
    for dtype in (BFLOAT16, np.dtype(np.float16)):
        if call.dtype == FLOAT32:
            found[f"x rounded to {dtype}"] = partial(call.by_way_of, dtype)
    found["+0 for -0"] = lambda: _rounded(_stock(x, cap).astype(FLOAT32) + FLOAT32.type(0), call.dtype)
    return found


def marks(arguments: Arguments) -> Mapping[str, np.ndarray]:
    """Places by name, bool like x each."""
    call = _Call(arguments)
    wide, quotient = call.x.astype(FLOAT32), call.quotient.astype(FLOAT32)
    size = np.abs(quotient)
    return {
        "x is NaN": np.isnan(wide),
        "x is infinite": np.isinf(wide),
        "x is a zero": wide == 0,
        "x is a denormal": denormal(call.x),
        "x / cap is a denormal": denormal(call.quotient),
        "x / cap overflows": np.isinf(quotient) & np.isfinite(wide),
        "the tanh is saturated": size >= SATURATED,
        "x / cap is below 2^-6 in size": size < 2.0**-6,
        "x / cap lies between 2^-6 and 1 in size": (size >= 2.0**-6) & (size < 1),
    }
