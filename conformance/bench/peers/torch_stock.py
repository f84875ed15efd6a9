"""torch's own operations on the same GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Shape = Mapping[str, int]
Call = Callable[..., Any]


def argmax(shape: Shape, dtype: str) -> Call:
    """log_softmax, then argmax."""
    import torch

    log_softmax, argmax = torch.log_softmax, torch.argmax

    def call(logits: Any) -> Any:
        return argmax(log_softmax(logits, dim=-1), dim=-1)

    return call


def softcap(shape: Shape, dtype: str) -> Call:
    """tanh(x / cap) * cap in three operations."""
    import torch

    tanh = torch.tanh

    def call(x: Any, cap: float) -> Any:
        return tanh(x / cap) * cap

    return call


def dense_row(shape: Shape, dtype: str) -> Call:
    """x times a bfloat16 matrix of the same shape that is not coded."""
    import torch

    weights = torch.randn(shape["rows"], shape["cols"], dtype=torch.bfloat16, device="cuda")

    def call(x: Any, *rest: Any) -> Any:
        return x.to(torch.bfloat16) @ weights

    return call
