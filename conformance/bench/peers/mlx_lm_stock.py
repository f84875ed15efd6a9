"""mlx-lm's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mlx_assay.oracles.submodule import load_submodule

Shape = Mapping[str, int]
Call = Callable[..., Any]


def softcap(shape: Shape, dtype: str) -> Call:
    """gemma4_text's compiled logit_softcap."""
    function = load_submodule("mlx_lm", "models.gemma4_text").logit_softcap

    def call(x: Any, cap: float) -> Any:
        return function(cap, x)

    return call
