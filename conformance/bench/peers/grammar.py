"""XGrammar's token masks: its MLX function, and those that write into torch logits on an NVIDIA GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlx_assay.oracles.submodule import load_submodule

Shape = Mapping[str, int]
Call = Callable[..., Any]


def mlx_mask(shape: Shape, dtype: str) -> Call:
    """apply_token_bitmask_mlx; the words cross to the device at each call."""
    import mlx.core as mx

    array, function, vocab = mx.array, _kernel("mlx"), shape["vocab"]

    def call(logits: Any, bits: Any) -> Any:
        return function(array(bits), logits, vocab)

    return call


def cuda_mask(shape: Shape, dtype: str) -> Call:
    """apply_token_bitmask_inplace_cuda."""
    return _in_place(_kernel("inplace_cuda"), shape)


def triton_mask(shape: Shape, dtype: str) -> Call:
    """apply_token_bitmask_inplace_triton."""
    return _in_place(_kernel("inplace_triton"), shape)


def _kernel(name: str) -> Call:
    """A kernel's function; its module alone, since the package asks for more than its kernels need."""
    module = load_submodule("xgrammar", f"kernels.apply_token_bitmask_{name}")
    made: Call = getattr(module, f"apply_token_bitmask_{name}")
    return made


def _in_place(function: Call, shape: Shape) -> Call:
    """The words are on the device already, one row of them for each row of logits, as these functions want them."""
    rows = shape["rows"]

    def call(logits: Any, bits: Any) -> Any:
        return function(logits, bits.expand(rows, -1))

    return call
