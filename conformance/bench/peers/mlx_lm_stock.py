"""mlx-lm's own functions."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

Shape = Mapping[str, int]
Call = Callable[..., Any]


def softcap(shape: Shape, dtype: str) -> Call:
    """gemma4_text's compiled logit_softcap."""
    function = importlib.import_module("mlx_lm.models.gemma4_text").logit_softcap

    def call(x: Any, cap: float) -> Any:
        return function(cap, x)

    return call
