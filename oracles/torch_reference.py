"""PyTorch on the CPU: each operation in the dtype itself, which rounds after each.

Scalars are one-element tensors of the dtype: torch would take a Python number wider than the dtype.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import require, require_bits

NAME = "torch-reference"
REQUIRES = ("torch", "pip install 'mlx-assay[torch]'")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def version() -> str:
    """The release of PyTorch; ImportError where it cannot be imported."""
    import torch

    return str(torch.__version__)


def to_torch(array: np.ndarray) -> Any:
    """A copy as a tensor; bfloat16 crosses as int16."""
    import torch

    if array.dtype == BFLOAT16:
        return torch.from_numpy(np.array(array.view(np.int16))).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def to_numpy(tensor: Any) -> np.ndarray:
    """A view as a NumPy array of the same bits."""
    import torch

    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy()).view(BFLOAT16)
    return np.asarray(tensor.numpy())


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keeps small operations off torch's thread pool, which costs a hundred times more where processes share cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@_one_thread()
def argmax_given(logits: np.ndarray, lse: np.ndarray, nan_rule: Literal["first", "skipped"] = "first") -> np.ndarray:
    """uint32 [...]: the lowest id of the largest rounded score of logits [..., V] - lse [..., 1].

    Integer logits are converted to lse's dtype. torch lets the first NaN win; "skipped" is as in numpy_reference.
    """
    import torch

    given = to_torch(lse)
    values = to_torch(logits).to(given.dtype) - given
    if nan_rule == "skipped":
        stuck = torch.isnan(values[..., 0])
        kept = torch.where(torch.isnan(values), torch.full((1,), -torch.inf, dtype=values.dtype), values)
        found = torch.where(stuck, 0, torch.argmax(kept, dim=-1))
    else:
        found = torch.argmax(values, dim=-1)
    return to_numpy(found).astype(np.uint32)


@_one_thread()
def apply_token_bitmask(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    """logits [..., V] plus 0 where bit (id & 31) of word id >> 5 is set, plus -inf elsewhere; missing words reject."""
    import torch

    given, vocabulary = to_torch(logits), logits.shape[-1]
    ids = torch.arange(vocabulary)
    words = torch.zeros(-(-vocabulary // 32), dtype=torch.int64)
    known = to_torch(bits.reshape(-1).astype(np.int32))[: len(words)]
    words[: len(known)] = known
    allowed = (words[ids >> 5] >> (ids & 31)) & 1
    mask = torch.zeros(vocabulary, dtype=given.dtype).masked_fill(allowed == 0, -torch.inf)
    return to_numpy(given + mask)


@_one_thread()
def logit_softcap(x: np.ndarray, cap: float) -> np.ndarray:
    """tanh(x / cap) * cap, each rounded to x's dtype, like x; cap goes through float32."""
    import torch

    given = to_torch(x)
    bound = torch.tensor([np.float32(cap)]).to(given.dtype)
    return to_numpy(torch.tanh(given / bound) * bound).reshape(x.shape)


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
        lse = np.zeros((6, 1), dtype)
        first, skipped = argmax_given(rows.astype(dtype), lse), argmax_given(rows.astype(dtype), lse, "skipped")
        require_bits(NAME, "argmax_given, NaN first", first, np.array([1, 0, 0, 0, 0, 0], np.uint32))
        require_bits(NAME, "argmax_given, NaN skipped", skipped, np.array([2, 0, 0, 0, 0, 0], np.uint32))
    lse = np.array([8.3125], BFLOAT16)  # log 4096, rounded
    for place, value, want in ((7, 2.0**-7, 0), (7, 2.0**-5, 7), (0, -(2.0**-5), 1), (0, -(2.0**-7), 0)):
        logits = np.zeros(4096, BFLOAT16)
        logits[place] = value
        require(NAME, f"argmax_given of zeros, {value} at {place}", int(argmax_given(logits, lse)), want)


def _test_mask() -> None:
    for identity in (0, 7, 8, 31, 32, 63, 64, 95):
        words = np.zeros(3, np.uint32)
        words[identity // 32] = 1 << (identity % 32)
        got = apply_token_bitmask(np.ones(96, np.float32), words.view(np.int32))
        require(NAME, f"the ids allowed by bit {identity}", np.flatnonzero(got == 1).tolist(), [identity])
    for dtype in (BFLOAT16, np.dtype(np.float16), np.dtype(np.float32)):
        logits = np.array([np.inf, np.nan, -0.0, 5.0, 7.0], dtype)
        got = apply_token_bitmask(logits, np.array([0b1100], np.int32))
        require_bits(NAME, "the additive mask 0b1100", got, np.array([np.nan, np.nan, 0.0, 5.0, -np.inf], dtype))


def _test_softcap() -> None:
    for value, cap, want in ((30.0, 50.0, 27.0), (100.0, 30.0, 29.875)):
        got = logit_softcap(np.array([value], BFLOAT16), cap)
        require_bits(NAME, f"softcap of {value} at cap {cap}", got, np.array([want], BFLOAT16))
    x = np.array([1331.0, 4400.0, 65504.0, np.inf, -65504.0, np.nan, 0.0, -0.0], np.float32)
    saturated = np.array([30.0, 30.0, 30.0, 30.0, -30.0, np.nan, 0.0, -0.0], np.float32)
    require_bits(NAME, "softcap of large values at cap 30", logit_softcap(x, 30.0), saturated)
