"""The oracle of the trellis fold against what Apple's compiler made of MLX's column sum, in every order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.executors.stock.reduction import reduce_columns
from mlx_assay.oracles import mlx_column_sum, trellis_row
from mlx_assay.oracles.fused import ORDERS

F32 = np.dtype(np.float32)


def partials(columns: int) -> Any:
    rng = np.random.default_rng(columns)
    rows = rng.standard_normal((1, 128, columns)) * np.exp2(rng.integers(-12, 13, (1, 128, columns)))
    rows[0, 64:, ::3] = -rows[0, :64, ::3]
    rows[0, :, 0], rows[0, 7, 1], rows[0, 9, 2] = -0.0, np.inf, np.nan
    return rows.astype(F32)


@pytest.mark.parametrize("version", ["0.31.2", "0.32.2", "0.32.4"])
@pytest.mark.parametrize("columns", [256, 1280])
def test_the_fold_is_apples_column_sum(stock: Any, version: str, columns: int) -> None:
    library, given = stock(version), partials(columns)
    for order in ORDERS:
        with fidelity.switched(simd_sum=order):
            apple = reduce_columns(library, given)
        for oracle in (trellis_row, mlx_column_sum):
            got = oracle.trellis_fold(given, F32, order, True)
            nan = np.isnan(apple)
            assert np.array_equal(np.isnan(got), nan)
            assert got[~nan].tobytes() == apple[~nan].tobytes(), (oracle.NAME, order)
