"""NumPy with ml_dtypes: every operation is computed wider and rounded to the dtype after it, no MLX anywhere.

NumPy 2 promotes bfloat16 with a Python number to float32, so nothing here leaves a dtype to promotion.
"""

from __future__ import annotations

from importlib.metadata import version as installed
from typing import Any, Literal

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import require, require_bits

NAME = "numpy-reference"
REQUIRES = ("ml_dtypes", "pip install ml_dtypes")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
NanRule = Literal["first", "skipped"]
"""Which score wins among NaN: "first", the first NaN (MLX 0.32.3 and later); "skipped", see `winners`."""


def version() -> str:
    """The releases of NumPy and ml_dtypes."""
    return f"{installed('numpy')} with ml_dtypes {installed('ml_dtypes')}"


def scores(logits: np.ndarray, lse: np.ndarray) -> np.ndarray:
    """logits [..., V] - lse [..., 1], rounded to lse's dtype; integer logits are first converted to it."""
    with np.errstate(all="ignore"):
        wide = logits.astype(lse.dtype).astype(np.float32) - lse.astype(np.float32)
        return wide.astype(lse.dtype)


def winners(values: np.ndarray, nan_rule: NanRule) -> np.ndarray:
    """uint32 [...]: the lowest id of the largest of values [..., V].

    By "first" the first NaN wins. By "skipped" NaN loses to every number, but one at id 0 is never beaten: MLX's CPU
    back end to 0.32.2 starts from the first element and takes what is greater (`[1, nan, 2]` gives 2, `[nan, 1, 2]` 0).
    """
    wide = values.astype(np.float32)
    if nan_rule == "first":
        return np.asarray(np.argmax(wide, axis=-1), np.uint32)
    kept = np.where(np.isnan(wide), np.float32(-np.inf), wide)
    found = np.where(np.isnan(wide[..., 0]), 0, np.argmax(kept, axis=-1))
    return np.asarray(found, np.uint32)


def argmax_given(logits: np.ndarray, lse: np.ndarray, nan_rule: NanRule = "first") -> np.ndarray:
    """uint32 [...]: the winners of the rounded scores of logits [..., V] and lse [..., 1]."""
    return winners(scores(logits, lse), nan_rule)


def allowed(bits: np.ndarray, vocabulary: int) -> np.ndarray:
    """bool [V]: bit (id & 31) of word id >> 5; ids past the last word are not allowed."""
    octets = bits.reshape(-1).astype("<i4").view(np.uint8)
    flags = np.unpackbits(octets, bitorder="little")[:vocabulary].astype(np.bool_)
    return np.pad(flags, (0, vocabulary - len(flags)))


def apply_token_bitmask(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """logits [..., V] plus 0 where allowed, plus -inf elsewhere, in the logits' dtype."""
    with np.errstate(all="ignore"):
        mask = np.where(allowed(bits, logits.shape[-1]), np.float32(0.0), np.float32(-np.inf))
        return (logits.astype(np.float32) + mask).astype(logits.dtype)


def scalar(cap: float, dtype: np.dtype[Any]) -> np.ndarray:
    """A Python number as MLX makes it a scalar of a dtype: through float32."""
    with np.errstate(all="ignore"):
        return np.asarray(cap, np.float32).astype(dtype)


def softcap_steps(x: np.ndarray, cap: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x / cap, its tanh, and that times cap, each rounded to x's dtype."""
    bound = scalar(cap, x.dtype).astype(np.float32)
    with np.errstate(all="ignore"):
        quotient = np.asarray(np.divide(x.astype(np.float32), bound)).astype(x.dtype)
        bent = np.asarray(np.tanh(quotient.astype(np.float64))).astype(x.dtype)
        return quotient, bent, np.asarray(bent.astype(np.float32) * bound).astype(x.dtype)


def logit_softcap(x: np.ndarray, cap: float) -> np.ndarray:
    """tanh(x / cap) * cap in x's dtype, like x; tanh is NumPy's float64 one, rounded."""
    return softcap_steps(x, cap)[2]


compiled_logit_softcap = logit_softcap


def self_test() -> None:
    """Answers known from public reports and by reasoning; raises OracleFault."""
    _test_argmax()
    _test_mask()
    _test_softcap()


def _test_argmax() -> None:
    nan, infinity = np.nan, np.inf
    rows = np.array([[1, nan, 2], [nan, 1, 2], [nan, nan, nan], [-infinity] * 3, [3, 3, 1], [0.0, -0.0, 0.0]])
    for dtype in (BFLOAT16, np.dtype(np.float16), np.dtype(np.float32)):
        values = rows.astype(dtype)
        require_bits(NAME, "winners, first", winners(values, "first"), np.array([1, 0, 0, 0, 0, 0], np.uint32))
        require_bits(NAME, "winners, skipped", winners(values, "skipped"), np.array([2, 0, 0, 0, 0, 0], np.uint32))
    given = np.array([[0.0, infinity, infinity, 1.0]], BFLOAT16)
    for rule, want in (("first", 1), ("skipped", 0)):
        got = argmax_given(given, np.array([[infinity]], BFLOAT16), "first" if rule == "first" else "skipped")
        require(NAME, f"[0, inf, inf, 1] - inf, NaN {rule}", int(got[0]), want)
    # log 4096 in bfloat16 is 8.3125: the subtraction must round to nearest even, not truncate.
    lse = np.array([8.3125], BFLOAT16)
    for place, value, want in ((7, 2.0**-7, 0), (7, 2.0**-5, 7), (0, -(2.0**-5), 1), (0, -(2.0**-7), 0)):
        logits = np.zeros(4096, BFLOAT16)
        logits[place] = value
        require(NAME, f"argmax_given of zeros, {value} at {place}", int(argmax_given(logits, lse)), want)


def _test_mask() -> None:
    for identity in (0, 7, 8, 31, 32, 63, 64, 95):
        words = np.zeros(3, np.uint32)
        words[identity // 32] = 1 << (identity % 32)
        found = np.flatnonzero(allowed(words.view(np.int32), 96)).tolist()
        require(NAME, f"the ids allowed by bit {identity}", found, [identity])
    require(NAME, "the ids allowed by a short mask", np.flatnonzero(allowed(np.array([-1]), 40)).size, 32)
    for dtype in (BFLOAT16, np.dtype(np.float16), np.dtype(np.float32)):
        logits = np.array([np.inf, np.nan, -0.0, 5.0, 7.0], dtype)
        got = apply_token_bitmask(logits, np.array([0b1100], np.int32))
        require_bits(NAME, "the additive mask 0b1100", got, np.array([np.nan, np.nan, 0.0, 5.0, -np.inf], dtype))


def _test_softcap() -> None:
    for dtype, value, cap, want in (
        (BFLOAT16, 30.0, 50.0, 27.0),
        (BFLOAT16, 100.0, 30.0, 29.875),
        (np.dtype(np.float16), 100.0, 30.0, 29.921875),
    ):
        got = logit_softcap(np.array([value], dtype), cap)
        require_bits(NAME, f"softcap of {value} at cap {cap}", got, np.array([want], dtype))
    x = np.array([1331.0, 4400.0, 65504.0, np.inf, -65504.0, np.nan, 0.0, -0.0], np.float32)
    saturated = np.array([30.0, 30.0, 30.0, 30.0, -30.0, np.nan, 0.0, -0.0], np.float32)
    require_bits(NAME, "softcap of large values at cap 30", logit_softcap(x, 30.0), saturated)
