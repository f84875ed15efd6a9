"""The fold of the trellis kernels against the column sum that Apple's compiler made of MLX's."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl import executors, trellis
from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.executors.stock.reduction import reduce_columns


@pytest.mark.parametrize("columns", [256, 512, 5120])
def test_the_fold_is_the_column_sum_of_mlx(stock: Any, columns: int) -> None:
    """[1, 128, C] over its middle axis, in every order of simd_sum; values that cancel show each order."""
    partial = np.random.default_rng(columns).standard_normal((128, columns)).astype(np.float32)
    partial[64:] -= partial[:64]
    partial[:, 0], partial[:, 1] = -0.0, np.inf
    seen = set()
    for order in fidelity.SWITCHES["simd_sum"]:
        with fidelity.switched(simd_sum=order), executors.use("host"):
            want = reduce_columns(stock("0.32.4"), partial[None])
            got = np.array(trellis.column_sum(mx.array(partial)))
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32)), order
        seen.add(want.tobytes())
    assert len(seen) == 4
