"""MLX's Metal kernels as Apple's compiler made them, run on this machine: what a GPU would answer, as far as is known.

The kernels are those of the installed release or of another that is named, from the macOS wheel of `mlx-metal`
(docs/apple-kernels.md), launched as MLX launches them for the shape. They share the host executor's runtime, so on that
executor this oracle stands beside others and never alone. What exp, log and tanh give is this machine's C library's,
and such results are bounded.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as installed
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import require_bits
from mlx_assay.oracles.stock_mlx import padded_words

if TYPE_CHECKING:
    from mlx_assay.impl.executors.apple import AppleLibrary

NAME = "stock-metal"
REQUIRES = ("llvmlite, and mlx-metal's wheel", "pip install 'mlx-assay[bitcode]', and a network for 45 MB once")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@cache
def library(release: str | None = None) -> AppleLibrary:
    """The kernels of a release of MLX, the installed one for None; fetched once.

    ImportError: llvmlite is absent, or no wheel can be had.
    """
    from mlx_assay.impl.executors import apple
    from mlx_assay.impl.executors.apple.wheel import WheelError

    try:
        return apple.load(release or installed("mlx"))
    except (WheelError, ValueError, OSError) as error:
        raise ImportError(str(error)) from error


def version() -> str:
    """The release of the kernels: "0.32.4 bitcode"; ImportError where they cannot be had."""
    library()
    return f"{installed('mlx')} bitcode"


def logsumexp(logits: np.ndarray, release: str | None = None) -> np.ndarray:
    """[..., 1] of logits [..., V] in their dtype; its exp and log are this machine's."""
    from mlx_assay.impl.executors.stock import dispatch

    return dispatch.logsumexp(library(release), np.ascontiguousarray(logits))


def argmax_given(logits: np.ndarray, lse: np.ndarray, release: str | None = None) -> np.ndarray:
    """uint32 [...]: the id of the largest of logits [..., V] - lse [..., 1]; logits are converted to lse's dtype."""
    from mlx_assay.impl.executors.stock import dispatch

    given = np.ascontiguousarray(logits.astype(lse.dtype))
    lowered = np.ascontiguousarray(np.broadcast_to(lse, given.shape))
    kernels = library(release)
    return dispatch.argmax(kernels, dispatch.binary(kernels, "Subtract", given, lowered))


def apply_token_bitmask(logits: np.ndarray, bits: np.ndarray, release: str | None = None) -> np.ndarray:
    """logits [..., V] plus 0 where bit (id & 31) of word id >> 5 is set, plus -inf elsewhere; missing words reject."""
    from mlx_assay.impl.executors.stock import dispatch

    ids = np.arange(logits.shape[-1])
    words = padded_words(bits, len(ids)).view(np.uint32)
    allowed = (words[ids >> 5] >> (ids & 31).astype(np.uint32)) & 1
    addend = np.where(allowed, 0.0, -np.inf).astype(logits.dtype)
    added = np.ascontiguousarray(np.broadcast_to(addend, logits.shape))
    return dispatch.binary(library(release), "Add", np.ascontiguousarray(logits), added)


def logit_softcap(x: np.ndarray, cap: float, release: str | None = None) -> np.ndarray:
    """tanh(x / cap) * cap as three kernels, each rounded to x's dtype; the tanh is this machine's, in float32."""
    from mlx_assay.impl.executors.stock import dispatch

    with np.errstate(all="ignore"):
        scalar = np.asarray(np.float32(cap)).astype(x.dtype).reshape(1)
    flat = np.ascontiguousarray(x).reshape(-1)
    kernels = library(release)
    quotient = dispatch.binary(kernels, "Divide", flat, scalar)
    capped = dispatch.binary(kernels, "Multiply", dispatch.unary(kernels, "Tanh", quotient), scalar)
    return capped.reshape(x.shape)


def column_sum(partials: np.ndarray, release: str | None = None) -> np.ndarray:
    """[C]: the sum of the rows of partials [R, C], in their dtype and in MLX's order for the shape."""
    from mlx_assay.impl.executors.stock import reduction

    total: np.ndarray = reduction.reduce_columns(library(release), np.ascontiguousarray(partials)[None])[0]
    return total


def trellis_fold(partial: np.ndarray, dtype: np.dtype[Any], order: str, flush: bool = False) -> np.ndarray:
    """dtype [1, cols]: the column sum of float32 partials [1, 128, cols], simdgroups added in `order`, rounded once."""
    from mlx_assay.oracles.mlx_column_sum import folded

    return folded(library(), partial, dtype, order, flush)


def self_test() -> None:
    """Answers known by reasoning; raises OracleFault."""
    for dtype in (np.dtype(np.float32), np.dtype(np.float16), BFLOAT16):
        tied = np.array([[1, 3, 3, 2], [-np.inf] * 4, [0, 0, 0, 7]]).astype(dtype)
        lse = np.array([[1], [0], [-1]]).astype(dtype)
        require_bits(NAME, f"argmax of {dtype}", argmax_given(tied, lse), np.array([1, 0, 3], np.uint32))
        logits = np.array([-0.0, 1.5, np.inf, -2.0]).astype(dtype)
        masked = np.array([0.0, 1.5, np.inf, -np.inf]).astype(dtype)
        got = apply_token_bitmask(logits, np.array([0b0111], np.int32))
        require_bits(NAME, f"a mask on {dtype}", got, masked)
        capped = logit_softcap(np.array([0.0, -0.0, np.inf, -np.inf, 640.0]).astype(dtype), 32.0)
        require_bits(NAME, f"softcap of {dtype}", capped, np.array([0.0, -0.0, 32.0, -32.0, 32.0]).astype(dtype))
    # 2^24 + 1 is 2^24 again, so that the second row's ones are lost unless they meet first, in the lanes' own sums.
    rows = np.zeros((128, 1), np.float32)
    rows[[0, 1, 33, 65]] = [[2.0**24], [1.0], [1.0], [1.0]]
    require_bits(NAME, "a column sum", column_sum(rows), np.array([2.0**24 + 4], np.float32))
