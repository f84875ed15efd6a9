"""XGrammar's token masks: its MLX function, and those that write into torch logits on an NVIDIA GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

Shape = Mapping[str, int]
Call = Callable[..., Any]
_KERNELS = "xgrammar.kernels.apply_token_bitmask"


def mlx_mask(shape: Shape, dtype: str) -> Call:
    """apply_token_bitmask_mlx; the words cross to the device at each call."""
    import mlx.core as mx

    array, function, vocab = (
        mx.array,
        importlib.import_module(f"{_KERNELS}_mlx").apply_token_bitmask_mlx,
        shape["vocab"],
    )

    def call(logits: Any, bits: Any) -> Any:
        return function(array(bits), logits, vocab)

    return call


def cuda_mask(shape: Shape, dtype: str) -> Call:
    """apply_token_bitmask_inplace_cuda."""
    return _in_place(importlib.import_module(f"{_KERNELS}_inplace_cuda").apply_token_bitmask_inplace_cuda, shape)


def triton_mask(shape: Shape, dtype: str) -> Call:
    """apply_token_bitmask_inplace_triton."""
    return _in_place(importlib.import_module(f"{_KERNELS}_inplace_triton").apply_token_bitmask_inplace_triton, shape)


def _in_place(function: Call, shape: Shape) -> Call:
    """The words are on the device already, one row of them for each row of logits, as these functions want them."""
    rows = shape["rows"]

    def call(logits: Any, bits: Any) -> Any:
        return function(logits, bits.expand(rows, -1))

    return call
