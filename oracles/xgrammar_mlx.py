"""XGrammar's apply_token_bitmask_mlx, the source of the additive contract (mlc-ai/xgrammar, Apache-2.0).

It adds 0 or -inf, looked up by the mask's bytes in a table of 256 rows. It raises a broadcast error for a mask that is
too short, where the contract rejects the ids of missing words: so missing words are set to 0 before the call.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as installed
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import require, require_bits
from mlx_assay.oracles.stock_mlx import padded_words, to_mlx, to_numpy
from mlx_assay.oracles.submodule import load_submodule

NAME = "xgrammar-mlx"
REQUIRES = ("xgrammar", "pip install 'mlx-assay[xgrammar]'")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@cache
def _function() -> Any:
    return load_submodule("xgrammar", "kernels.apply_token_bitmask_mlx").apply_token_bitmask_mlx


def version() -> str:
    """The release of XGrammar; ImportError where it is absent."""
    _function()
    return installed("xgrammar")


def apply_token_bitmask(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """logits [..., V] plus 0 or -inf by int32 words; one mask for every row, like logits."""
    vocabulary = logits.shape[-1]
    words = to_mlx(padded_words(bits, vocabulary))
    return to_numpy(_function()(words, to_mlx(logits), vocabulary))


def self_test() -> None:
    """Every byte value at every byte of a word (lablup/mlxcel#1853), the sign bit, special values, a short mask."""
    octets = np.arange(256, dtype=np.uint32)
    for byte in range(4):
        words = (octets << np.uint32(8 * byte)).view(np.int32)
        want = np.full((256, 4, 8), -np.inf, np.float32)
        want[:, byte][np.arange(256)[:, None] >> np.arange(8) & 1 == 1] = 0.0
        got = apply_token_bitmask(np.zeros(256 * 32, np.float32), words)
        require_bits(NAME, f"every value of byte {byte}", got, want.reshape(-1))
    for words_of, ids in (([-(2**31)], [31]), ([-(2**31), 1], [31, 32])):
        got = apply_token_bitmask(np.ones(33, BFLOAT16), np.array(words_of, np.int32))
        require(NAME, f"the ids allowed by words {words_of}", np.flatnonzero(got == 1).tolist(), ids)
    for dtype in (BFLOAT16, np.dtype(np.float16), np.dtype(np.float32)):
        logits = np.array([np.inf, np.nan, -0.0, 5.0, 7.0], dtype)
        special = apply_token_bitmask(logits, np.array([0b1100], np.int32))
        require_bits(NAME, "the additive mask 0b1100", special, np.array([np.nan, np.nan, 0.0, 5.0, -np.inf], dtype))
