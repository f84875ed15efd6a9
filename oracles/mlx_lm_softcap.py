"""mlx-lm's logit softcaps: the compiled ones of Gemma 4 and Gemma 3n, imported, and Gemma 2's unfused one.

Gemma 2's stands inside a method (mlx_lm/models/gemma2.py, Model.__call__) and is written out here:
`out = mx.tanh(out / self.final_logit_softcapping)` and `out = out * self.final_logit_softcapping`.
An integer cap is passed as a float, the same number: mx.compile's cache (MLX 0.32.4) takes an integer for the float of
the same bits, so that a cap of 1 and then of 5e-324 would replay the graph of 1.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as installed
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import require_bits
from mlx_assay.oracles.graph import compiling
from mlx_assay.oracles.stock_mlx import to_mlx, to_numpy
from mlx_assay.oracles.submodule import load_submodule

NAME = "mlx-lm-softcap"
REQUIRES = ("mlx_lm", "pip install 'mlx-assay[mlx-lm]'")


@cache
def _function(model: str) -> Any:
    return load_submodule("mlx_lm", f"models.{model}").logit_softcap


def version() -> str:
    """The release of mlx-lm; ImportError where it is absent."""
    _function("gemma4_text")
    return installed("mlx-lm")


def gemma4(x: np.ndarray, cap: float) -> np.ndarray:
    """mlx_lm.models.gemma4_text.logit_softcap, a shapeless compile, like x; cap is a Python number."""
    return _compiled("gemma4_text", x, cap)


def gemma3n(x: np.ndarray, cap: float) -> np.ndarray:
    """mlx_lm.models.gemma3n.logit_softcap, a shapeless compile, like x; cap is a Python number."""
    return _compiled("gemma3n", x, cap)


def _compiled(model: str, x: np.ndarray, cap: float) -> np.ndarray:
    # What tells graphs apart: both models' have one name, and a CPU's is compiled for a number of axes.
    with compiling("softcap", str(x.dtype), float(cap).hex(), str(x.ndim)):
        return to_numpy(_function(model)(float(cap), to_mlx(x)))


def gemma2(x: np.ndarray, cap: float) -> np.ndarray:
    """The three operations of mlx_lm.models.gemma2, not compiled, like x; cap is a Python number."""
    import mlx.core as mx

    out = mx.tanh(to_mlx(x) / cap)
    out = out * cap
    return to_numpy(out)


compiled_logit_softcap = gemma4
logit_softcap = gemma2


def self_test() -> None:
    """Saturation without NaN (karpathy and others: tanh as a ratio of exponentials), stepwise rounding, shapes."""
    bfloat16 = np.dtype(ml_dtypes.bfloat16)
    x = np.array([1331.0, 4400.0, 65504.0, np.inf, -65504.0, np.nan, 0.0, -0.0], np.float32)
    saturated = np.array([30.0, 30.0, 30.0, 30.0, -30.0, np.nan, 0.0, -0.0], np.float32)
    for form in (gemma4, gemma3n, gemma2):
        asked = f"{form.__name__}'s softcap"
        require_bits(NAME, f"{asked} of large values at cap 30", form(x, 30.0), saturated)
        require_bits(NAME, f"{asked} in two rows", form(x.reshape(2, 4), 30.0), saturated.reshape(2, 4))
        for value, cap, want in ((30.0, 50.0, 27.0), (100.0, 30.0, 29.875)):
            got = form(np.array([value], bfloat16), cap)
            require_bits(NAME, f"{asked} of {value} at cap {cap}", got, np.array([want], bfloat16))
