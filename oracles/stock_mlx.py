"""Stock MLX operations on the default device: what the kernels promise to equal.

logsumexp is always asked over axis -1 with keepdims on a row-contiguous array: other spellings of the same reduction
have taken other paths, with other bits (ml-explore/mlx#2474).
"""

from __future__ import annotations

import math
from functools import cache
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import OracleFault, require, require_bits

if TYPE_CHECKING:
    import mlx.core as mx

NAME = "stock-mlx"
REQUIRES = ("mlx", "pip install 'mlx[cpu]' on Linux, 'mlx' on macOS")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def version() -> str:
    """The release of MLX and the default device: "0.32.4 cpu"."""
    import mlx.core as mx

    return f"{installed('mlx')} {mx.default_device().type.name}"


def to_mlx(array: np.ndarray) -> mx.array:
    """A copy as an MLX array; bfloat16 crosses as uint16."""
    import mlx.core as mx

    if array.dtype == BFLOAT16:
        return mx.array(array.view(np.uint16)).view(mx.bfloat16)
    return mx.array(array)


def to_numpy(array: Any) -> np.ndarray:
    """A copy as a NumPy array; evaluates."""
    import mlx.core as mx

    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(BFLOAT16)
    return np.array(array)


def logsumexp(logits: np.ndarray) -> np.ndarray:
    """Native logsumexp of logits [..., V] over the last axis: [..., 1] in the logits' dtype, float32 for integers.

    Raises ValueError where MLX does: for arrays of size 0.
    """
    import mlx.core as mx

    return to_numpy(mx.logsumexp(to_mlx(logits), axis=-1, keepdims=True))


def normalized_argmax(logits: np.ndarray) -> np.ndarray:
    """uint32 [...]: argmax(logits - logsumexp(logits)) of logits [..., V]; integer logits give float32 scores."""
    import mlx.core as mx

    given = to_mlx(logits)
    return to_numpy(mx.argmax(given - mx.logsumexp(given, axis=-1, keepdims=True), axis=-1))


def argmax_given(logits: np.ndarray, lse: np.ndarray) -> np.ndarray:
    """uint32 [...]: argmax(logits - lse) of logits [..., V] and lse [..., 1] of their dtype."""
    import mlx.core as mx

    return to_numpy(mx.argmax(to_mlx(logits) - to_mlx(lse), axis=-1))


def apply_token_bitmask(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """logits [..., V] plus 0 where bit (id & 31) of word id >> 5 is set, plus -inf elsewhere; missing words reject."""
    import mlx.core as mx

    given, vocabulary = to_mlx(logits), logits.shape[-1]
    words = mx.array(padded_words(bits, vocabulary).view(np.uint32))
    allowed = mx.bitwise_and(mx.right_shift(words[:, None], mx.arange(32, dtype=mx.uint32)), 1).flatten()[:vocabulary]
    zero, reject = mx.array(0.0, given.dtype), mx.array(-np.inf, given.dtype)
    return to_numpy(given + mx.where(allowed.astype(mx.bool_), zero, reject))


def padded_words(bits: np.ndarray, vocabulary: int) -> np.ndarray:
    """Exactly ceil(V / 32) int32 words: surplus words are dropped, missing ones are 0."""
    words = np.zeros(-(-vocabulary // 32), np.int32)
    given = bits.reshape(-1)[: len(words)]
    words[: len(given)] = given
    return words


def logit_softcap(x: np.ndarray, cap: float) -> np.ndarray:
    """tanh(x / cap) * cap as three primitives, each rounded to x's dtype; cap is a Python number."""
    import mlx.core as mx

    return to_numpy(mx.tanh(to_mlx(x) / cap) * cap)


compiled_logit_softcap = logit_softcap


@cache
def flushes_denormals() -> bool:
    """Whether the default device takes a float32 denormal for zero, by asking it."""
    import mlx.core as mx

    denormal = mx.array(np.array([2.0**-130, 2.0**-130], np.float32))
    return bool(to_numpy(denormal * mx.array(2.0**20, mx.float32))[0] == 0.0)


def runs_empty_graphs() -> bool:
    """Whether a compiled graph without an element to compute runs on the default device.

    The CUDA back end of MLX 0.32.4 ends the process there: it launches a grid of nothing (docs/cuda.md).
    """
    import mlx.core as mx

    return not (mx.cuda.is_available() and mx.default_device() == mx.gpu)


def self_test() -> None:
    """Answers known from public reports and by reasoning; raises OracleFault."""
    _test_wide_sums()
    _test_logsumexp()
    _test_argmax()
    _test_mask()
    _test_softcap()


def _test_wide_sums() -> None:
    """A logsumexp that adds halves in halves stops growing at 256 or 2,048 terms (as in mlx#3909)."""
    for count, dtype, spacing in ((70000, BFLOAT16, 2.0**-4), (20000, np.dtype(np.float16), 2.0**-7)):
        got = float(logsumexp(np.zeros(count, dtype))[0])
        if not abs(got - math.log(count)) <= spacing:
            raise OracleFault(f"Expected about {math.log(count)} from oracle {NAME} for {count} zeros but got {got}")


def _test_logsumexp() -> None:
    infinity = float("inf")
    rows = ([infinity, 2.0, 3.0], [-infinity] * 3, [-infinity, -2.5, -infinity], [1.0, float("nan"), 2.0])
    want = np.array([infinity, -infinity, -2.5, float("nan")], np.float32)
    require_bits(NAME, "logsumexp of special rows", logsumexp(np.array(rows, np.float32))[:, 0], want)
    for row, answer in (([0.0] * 3, 1.0986123), ([4.0, 5.0, 6.0], 6.4076059), ([1000.0] * 3, 1001.0986123)):
        got = float(logsumexp(np.array(row, np.float32))[0])
        if not abs(got - answer) <= answer * 2.0**-19:
            raise OracleFault(f"Expected about {answer} from oracle {NAME} for logsumexp({row}) but got {got}")


def _test_argmax() -> None:
    """Ties made by rounding the score, which a raw argmax does not see (ml-explore/mlx-lm#1479)."""
    half = np.dtype(np.float16)
    for dtype, place, value, want in (
        (BFLOAT16, 7, 2.0**-7, 0),
        (half, 7, 0.001, 0),
        (np.dtype(np.float32), 7, 1e-8, 0),
        (BFLOAT16, 7, 2.0**-5, 7),
        (BFLOAT16, 0, -(2.0**-5), 1),
        (BFLOAT16, 0, -(2.0**-7), 0),
    ):
        logits = np.zeros(4096, dtype)
        logits[place] = value
        require(NAME, f"normalized_argmax of 4096 zeros, {value} at {place}", int(normalized_argmax(logits)), want)
    for dtype in (BFLOAT16, half, np.dtype(np.float32)):
        logits, lse = np.array([[1, 5, 5, 2], [-np.inf] * 4], dtype), np.array([[0.5], [0.5]], dtype)
        require_bits(NAME, "argmax_given", argmax_given(logits, lse), np.array([1, 0], np.uint32))


def _test_mask() -> None:
    logits = np.array([np.inf, np.nan, -0.0, 5.0], np.float32)
    got = apply_token_bitmask(logits, np.array([0b1100], np.int32))
    require_bits(NAME, "the additive mask 0b1100", got, np.array([np.nan, np.nan, 0.0, 5.0], np.float32))
    for words, want in (([-(2**31)], [31]), ([-(2**31), 1], [31, 32]), ([0, 2], [33])):
        masked = apply_token_bitmask(np.zeros(34, BFLOAT16), np.array(words, np.int32))
        require(NAME, f"the ids allowed by words {words}", np.flatnonzero(masked == 0).tolist(), want)


def _test_softcap() -> None:
    for value, cap, want in ((30.0, 50.0, 27.0), (100.0, 30.0, 29.875)):
        got = logit_softcap(np.array([value], BFLOAT16), cap)
        require_bits(NAME, f"softcap of {value} at cap {cap}", got, np.array([want], BFLOAT16))
    x = np.array([1331.0, 4400.0, 3e38, np.inf, -3e38, np.nan, 0.0, -0.0], np.float32)
    saturated = np.array([30.0, 30.0, 30.0, 30.0, -30.0, np.nan, 0.0, -0.0], np.float32)
    require_bits(NAME, "softcap of large values at cap 30", logit_softcap(x, 30.0), saturated)
