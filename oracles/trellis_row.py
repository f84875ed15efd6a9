"""The down projection of one row over trellis codes, in NumPy: the same float32 operations in the same order.

y[c] = sum over rows r of code(r, c) * scale[r] * x[r]: the rows lie in 128 splits, each a chain of fused multiply-adds;
MLX's column sum at this shape adds the splits (mlx/backend/metal/kernels/reduction/reduce_col.h, col_reduce_looped).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version as installed
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.oracles import host_lut
from mlx_assay.oracles.fault import require, require_bits
from mlx_assay.oracles.fused import LANES, ORDERS, added, flushed, fma, multiplied, simd_sum
from mlx_assay.oracles.trellis_layout import Packed

NAME = "trellis-row"
REQUIRES = ("numpy", "pip install numpy")
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SPLITS = 128


def version() -> str:
    """The releases of NumPy and ml_dtypes."""
    return f"{installed('numpy')} with ml_dtypes {installed('ml_dtypes')}"


def partials(
    x: np.ndarray,
    packed: Packed,
    scales: np.ndarray,
    flush: bool = False,
    *,
    table: Callable[[int], np.ndarray] = host_lut.unrefined,
    step: Callable[..., np.ndarray] | None = None,
) -> np.ndarray:
    """float32 [128, cols]: split s over rows s * n to s * n + n - 1, ascending, n = ceil(rows / 128); none gives 0.

    Each step is fma(code * scale, x, sum) with the unrefined code and the product rounded before. Another `table` of
    codes or another `step` makes one of MISTAKES.
    """
    words, codes, step = packed.words, table(packed.L), step or fma
    each = -(-len(words) // SPLITS)
    activations, factors = x.reshape(-1).astype(np.float32), scales.astype(np.float32)
    if flush:
        activations, factors = flushed(activations), flushed(factors)
    sums = np.zeros((SPLITS, packed.cols), np.float32)
    for first in range(each):
        rows = np.arange(first, len(words), each)
        weights = multiplied(codes[packed.states(words[rows])], factors[rows, None], flush)
        spread = np.broadcast_to(activations[rows, None], weights.shape)
        sums[: len(rows)] = step(weights, spread, sums[: len(rows)], flush)
    return sums


MISTAKES: Mapping[str, Mapping[str, Any]] = {
    "codes that are correctly rounded": {"table": host_lut.exact},
    "product and sum rounded apart": {"step": lambda a, b, c, flush: added(multiplied(a, b, flush), c, flush)},
    "a sum in float64, rounded twice": {"step": lambda a, b, c, flush: (a.astype("f8") * b + c).astype("f4")},
}
"""What is easily taken for the contract and is not, as arguments of `partials`: for the explanation of a difference."""


def trellis_fold(partial: np.ndarray, dtype: np.dtype[Any], order: str, flush: bool = False) -> np.ndarray:
    """dtype [1, cols] of float32 partials [1, 128, cols], as MLX sums 128 rows: lane y adds y, y + 32, y + 64, y + 96
    onto 0, row + total, then the SIMD group adds its 32 lanes in `order`."""
    rows = flushed(partial.reshape(SPLITS, -1)) if flush else partial.reshape(SPLITS, -1)
    lanes = np.zeros((LANES, rows.shape[1]), np.float32)
    for first in range(0, SPLITS, LANES):
        lanes = added(rows[first : first + LANES], lanes, flush)
    return simd_sum(lanes, order, flush).astype(dtype)[None]


def down_row(
    x: np.ndarray,
    packed: Packed,
    scales: np.ndarray,
    dtype: np.dtype[Any],
    order: str,
    flush: bool = False,
    **mistake: Any,
) -> np.ndarray:
    """dtype [1, cols] of x [1, rows] and scales [rows]: `partials`, then `trellis_fold`."""
    return trellis_fold(partials(x, packed, scales, flush, **mistake)[None], dtype, order, flush)


def self_test() -> None:
    """Known answers of each step; raises OracleFault."""
    host_lut.self_test()
    _test_fma()
    _test_orders()
    _test_halves()
    _test_row()


def _test_fma() -> None:
    """Two roundings, of the product or of the sum in float64, give another last bit."""
    rows = (
        (2.0**-24 * (1 + 2.0**-18), 1 - 2.0**-18, 1 + 2.0**-23, 1 + 2.0**-23),
        (1 + 2.0**-12, 1 + 2.0**-12, -(1 + 2.0**-11), 2.0**-24),
        (-(2.0**-24) * (1 + 2.0**-18), 1 - 2.0**-18, -(1 + 2.0**-23), -(1 + 2.0**-23)),
        (2.0**-75, 2.0**-75, 2.0**-149, 2.0**-148),
        (3e38, 2.0, -np.inf, -np.inf),
        (3e38, 3.0, -3e38, np.inf),
        (0.0, -1.0, 0.0, 0.0),
    )
    a, b, c, want = (np.array(column, np.float32) for column in zip(*rows, strict=True))
    require_bits(NAME, "fma", fma(a, b, c), want)
    tiny = np.array([2.0**-130, 2.0**-126, 2.0**-126], np.float32)
    got = fma(tiny, np.array([1, 0.5, -1], np.float32), np.array([0, 0, -0.0], np.float32), True)
    require_bits(NAME, "flushed fma", got, np.array([0.0, 0.0, -(2.0**-126)], np.float32))
    words = Packed(np.zeros((1, 16), np.uint32), 2, 12)
    got = partials(tiny[None, :1], words, np.full(1, 2.0**60, np.float32), True)
    require_bits(NAME, "a denormal x that is flushed", got, np.zeros((SPLITS, 256), np.float32))


def _test_orders() -> None:
    """Lanes that tell the four orders apart: what is lost beside 2^25 depends on what is added first."""
    large = 2.0**25
    first = {0: large, 1: 1.0, 16: -large, 17: 1.0}
    second = {0: -large, 1: large, 16: 1.0}
    wanted = {
        "ascending-butterfly": (0.0, 1.0),
        "descending-butterfly": (2.0, 0.0),
        "sequential": (1.0, 1.0),
        "reverse-sequential": (0.0, 0.0),
    }
    require(NAME, "the orders", sorted(ORDERS), sorted(wanted))
    for order, want in wanted.items():
        for lanes, sum_ in zip((first, second), want, strict=True):
            values = np.zeros((LANES, 1), np.float32)
            values[list(lanes), 0] = list(lanes.values())
            require(NAME, f"the sum of {lanes} in {order}", float(simd_sum(values, order)[0]), sum_)


def _test_halves() -> None:
    """Sums of halves in halves stop growing at 256 and 2,048: the fold adds in float32 and rounds once."""
    for dtype, each, want in ((BFLOAT16, 3.0, 384.0), (BFLOAT16, 548.0, 70144.0), (np.dtype(np.float16), 156.25, 2e4)):
        rows = np.full((1, SPLITS, 1), each, np.float32)
        for order in ORDERS:
            got = trellis_fold(rows, dtype, order)
            require_bits(NAME, f"the fold of 128 times {each}", got, np.array([[want]], dtype))


def _test_row() -> None:
    """129 rows are two a split, and splits 65 to 127 have none; a scale that is applied late gives other bits."""
    words = np.zeros((129, 16), np.uint32)
    code = host_lut.unrefined(12)[0]
    x, scales = np.ones((1, 129), np.float32), np.full(129, 0.0131, np.float16)
    found = partials(x, Packed(words, 2, 12), scales)
    weight = code * np.float32(np.float16(0.0131))
    want = np.zeros((SPLITS, 256), np.float32)
    want[:64], want[64] = weight + weight, weight
    require_bits(NAME, "partials of 129 rows", found, want)
    ramp = np.arange(1, 130, dtype=np.float32)[None]
    found = partials(ramp, Packed(words, 2, 12), np.ones(129, np.float16))
    second = np.append(ramp[0, 1::2], np.float32(0))
    want = fma(np.full(65, code), second, np.asarray(code * ramp[0, ::2]))
    require_bits(NAME, "partials of a ramp", found[:65, 0], want)
