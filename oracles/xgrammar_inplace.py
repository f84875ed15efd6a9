"""XGrammar's apply_token_bitmask_inplace on the CPU through torch: a contract of its own, "in-place".

It writes -inf over rejected logits and leaves allowed ones as they are. Against the additive contract:
1. a rejected NaN or +inf becomes -inf here, NaN there (mlc-ai/xgrammar#285);
2. an allowed -0.0 stays -0.0 here, becomes +0.0 there;
3. an allowed signalling NaN keeps its bits here, may become quiet there (a NaN equals any NaN for both);
4. an allowed denormal keeps its bits here, may be flushed there on a device that flushes;
5. ids past the mask's last word are left as they are here, with a warning, and rejected there: the words are padded;
6. arrays of more than two dimensions are refused here: they are flattened to rows;
7. bits past V count here: where every id is allowed and the last word has a zero bit past V, XGrammar 0.2.9 writes one
   -inf at that place, which is the next row or foreign memory (V=2, word 0b11, two rows: the second row's id 0 is
   lost). Such bits, which the additive contract ignores, are set before the call.
`apply_token_bitmask` maps 1 and 2, which it sees from the values alone: everything else is XGrammar's.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as installed
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import encodings, require, require_bits
from mlx_assay.oracles.submodule import load_submodule
from mlx_assay.oracles.torch_reference import to_numpy, to_torch

NAME = "xgrammar-inplace"
REQUIRES = ("xgrammar", "pip install 'mlx-assay[xgrammar]'")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@cache
def _function() -> Any:
    load_submodule("xgrammar", "load_binding")
    return load_submodule("xgrammar", "kernels.apply_token_bitmask_inplace_cpu").apply_token_bitmask_inplace_cpu


def version() -> str:
    """The release of XGrammar; ImportError where it or torch is absent."""
    _function()
    return installed("xgrammar")


def apply_token_bitmask_inplace(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """A copy of logits [..., V] in which every id without its bit in the int32 words is -inf."""
    vocabulary = logits.shape[-1]
    words = np.zeros(-(-vocabulary // 32), np.int32)
    given = bits.reshape(-1)[: len(words)]
    words[: len(given)] = given
    if past := vocabulary % 32:
        words.view(np.uint32)[-1] |= np.uint32(2**32 - 2**past)
    rows = to_torch(logits.reshape(-1, vocabulary))
    _function()(rows, to_torch(words).expand(len(rows), -1), vocabulary)
    return to_numpy(rows).reshape(logits.shape)


def apply_token_bitmask(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """What the in-place result says under the additive contract: differences 1 and 2 are mapped, like logits."""
    written = apply_token_bitmask_inplace(logits, bits)
    wide, after = logits.astype(np.float32), written.astype(np.float32)
    rejected = after == -np.inf
    undefined = rejected & ~(wide < np.inf)
    negative_zero = ~rejected & (wide == 0)
    return np.where(undefined, logits.dtype.type(np.nan), np.where(negative_zero, logits.dtype.type(0), written))


def self_test() -> None:
    """Both contracts on special values, every byte value, rows, the sign bit; raises OracleFault."""
    mask = np.array([0b1100], np.int32)
    for dtype in (BFLOAT16, np.dtype(np.float16), np.dtype(np.float32)):
        logits = np.array([np.inf, np.nan, -0.0, 5.0, 7.0, -0.0], dtype)
        written = np.array([-np.inf, -np.inf, -0.0, 5.0, -np.inf, -np.inf], dtype)
        added = np.array([np.nan, np.nan, 0.0, 5.0, -np.inf, -np.inf], dtype)
        require_bits(NAME, "the in-place mask 0b1100", apply_token_bitmask_inplace(logits, mask), written)
        require_bits(NAME, "the additive mask 0b1100", apply_token_bitmask(logits, mask), added)
        if encodings(logits)[2] == 0:
            raise AssertionError("the negative zero of this self-test has lost its sign")
    octets = np.arange(256, dtype=np.uint32)
    for byte in range(4):
        want = np.full((2, 256, 4, 8), -np.inf, np.float32)
        want[:, :, byte] = np.where(np.arange(256)[:, None] >> np.arange(8) & 1 == 1, 0.0, -np.inf)
        got = apply_token_bitmask_inplace(
            np.zeros((2, 256 * 32), np.float32), (octets << np.uint32(8 * byte)).view("i4")
        )
        require_bits(NAME, f"every value of byte {byte}", got, want.reshape(2, -1))
    kept = apply_token_bitmask_inplace(np.ones((3, 2), np.float32), np.array([0b11], np.int32))
    require_bits(NAME, "three rows of two ids, all allowed", kept, np.ones((3, 2), np.float32))
    short = apply_token_bitmask(np.ones(40, np.float32), np.array([-(2**31)], np.int32))
    require(NAME, "the ids allowed by a short mask", np.flatnonzero(short == 1).tolist(), [31])
