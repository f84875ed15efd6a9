"""MLX's own column sum, col_reduce_looped, compiled from the header that MLX ships and run on this machine's CPU.

It is what a stock `mx.sum(partials, axis=1)` runs on Metal at this shape; MLX's CPU back end adds in another order.
Only the order of a SIMD group's sum is not in its text, and is given.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import version as installed
from typing import Any

import numpy as np

from mlx_assay.impl.executors import fidelity
from mlx_assay.oracles.fault import require_bits

NAME = "mlx-column-sum"
REQUIRES = ("mlx", "pip install 'mlx[cpu]' on Linux, 'mlx' on macOS, and a C++ compiler or ziglang")
ORDERS = fidelity.SWITCHES["simd_sum"]


def version() -> str:
    """The release of MLX whose header it is; raises ImportError where nothing here can compile it."""
    from mlx_assay.impl.executors.toolchain import ToolchainError, toolchain

    try:
        toolchain()
    except ToolchainError as error:
        raise ImportError(f"no compiler for MLX's headers: {error}") from error
    return f"{installed('mlx')} from its header"


@cache
def _library() -> Any:
    from mlx_assay.impl.executors.stock import StockLibrary

    return StockLibrary()


def trellis_fold(partial: np.ndarray, dtype: np.dtype[Any], order: str, flush: bool = False) -> np.ndarray:
    """dtype [1, cols]: the sum of float32 partials [1, 128, cols] over their middle axis, rounded once."""
    return folded(_library(), partial, dtype, order, flush)


def folded(library: Any, partial: np.ndarray, dtype: np.dtype[Any], order: str, flush: bool) -> np.ndarray:
    """The same by a library of MLX's kernels, whichever door it comes through."""
    from mlx_assay.impl.executors.stock.reduction import reduce_columns

    denormals = "flushed" if flush else "kept"
    with fidelity.switched(simd_sum=order, f32_denormals=denormals), np.errstate(all="ignore"):
        sums: np.ndarray = reduce_columns(library, np.ascontiguousarray(partial))
        return np.asarray(sums.astype(dtype))


def self_test() -> None:
    """Sums that only one order gives, sums of halves, and one of each lane's four; raises OracleFault."""
    large = 2.0**25
    wanted = {
        "ascending-butterfly": (0.0, 1.0),
        "descending-butterfly": (2.0, 0.0),
        "sequential": (1.0, 1.0),
        "reverse-sequential": (0.0, 0.0),
    }
    rows = np.zeros((1, 128, 256), np.float32)
    rows[0, [0, 1, 16, 17], 0] = [large, 1.0, -large, 1.0]
    rows[0, [0, 1, 16], 1] = [-large, large, 1.0]
    rows[0, [5, 37, 69, 101], 2] = [1.0, large, 1.0, -large]
    rows[0, :, 3], rows[0, :, 4] = 548.0, -0.0
    for order in ORDERS:
        got = trellis_fold(rows, np.dtype(np.float32), order)[0, :5]
        require_bits(NAME, f"sums in {order}", got, np.array([*wanted[order], 0.0, 70144.0, 0.0], np.float32))
