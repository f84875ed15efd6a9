"""The orders of MLX's reductions, as trees.py describes them, against the kernels that Apple's compiler made."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.conformance.judging.order import diagnose
from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.executors.stock import reduction
from mlx_assay.oracles import trees
from mlx_assay.oracles.accumulation import Combination, Step, Tree

SIMD_SUMS: dict[str, Combination] = {
    "ascending-butterfly": "ascending-butterfly",
    "descending-butterfly": "descending-butterfly",
    "sequential": "sequential",
    "reverse-sequential": "reverse",
}
VERSION = "0.32.4"
SHAPES = [(3, 40), (31, 5), (32, 5), (128, 70), (256, 33), (257, 33), (1023, 31), (1024, 31), (2000, 64)]
DTYPES = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def wild(dtype: np.dtype, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return np.asarray(rng.standard_normal(shape) * np.exp(2 * rng.standard_normal(shape))).astype(dtype)


def column_steps(size: int, columns: int, simd_sum: Combination) -> tuple[Step, ...]:
    if size < 32:
        return trees.mlx_column_small(size)
    if columns < 32 and size >= 1024:
        return trees.mlx_column_long(size, simd_sum)
    return (trees.mlx_column_two_pass if size > 256 else trees.mlx_column_looped)(size, simd_sum)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("simd_sum", SIMD_SUMS)
def test_rows(stock: Any, simd_sum: str, dtype: np.dtype) -> None:
    for size in (5, 64, 65, 100, 512, 513, 1024, 1500, 5000):
        for rows in (3, 33):
            x = wild(dtype, rows, size)
            with fidelity.switched(simd_sum=simd_sum):
                got = reduction.reduce_rows(stock(VERSION), x)
            want = Tree("row", trees.mlx_row(size, SIMD_SUMS[simd_sum])).total(x)
            np.testing.assert_array_equal(got.view(f"u{dtype.itemsize}"), want.view(f"u{dtype.itemsize}"))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("simd_sum", SIMD_SUMS)
def test_columns(stock: Any, simd_sum: str, dtype: np.dtype) -> None:
    for size, columns in (
        (3, 40),
        (31, 5),
        (32, 5),
        (128, 70),
        (256, 33),
        (257, 33),
        (1023, 31),
        (1024, 31),
        (2000, 64),
    ):
        x = wild(dtype, 1, size, columns)
        with fidelity.switched(simd_sum=simd_sum):
            got = reduction.reduce_columns(stock(VERSION), x)[0]
        want = Tree("column", column_steps(size, columns, SIMD_SUMS[simd_sum])).total(x[0].T)
        np.testing.assert_array_equal(got.view(f"u{dtype.itemsize}"), want.view(f"u{dtype.itemsize}"))


def test_the_diagnosis_names_apples_column_kernel(stock: Any) -> None:
    x = wild(DTYPES[0], 1, 128, 64)
    with fidelity.switched(simd_sum="descending-butterfly"):
        got = reduction.reduce_columns(stock(VERSION), x)[0]
    (found,) = diagnose(got, np.ascontiguousarray(x[0].T)).matches
    assert "MLX looped column reduction, descending-butterfly" in found.name
