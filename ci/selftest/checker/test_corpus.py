"""The corpus is well formed, and its sound twins compute what they say."""

from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from checker.corpus import Array, Kernel, Row, rows, values, wanted

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker.finding import Kind

ROWS = list(rows())
FAULTY = [row for row in ROWS if row.faulty]


def to_mlx(array: Array) -> Any:
    whole = values(Array(array.name, array.dtype, array.shape, False, array.values))
    if array.dtype == "bfloat16":
        return mx.array(whole.view(np.uint16)).view(mx.bfloat16)
    return mx.array(whole).T if array.transposed else mx.array(whole)


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


def run(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    """The outputs of one launch on the host executor."""
    launch = dict(kernel.launch)
    inputs, outputs = launch.pop("inputs"), launch.pop("outputs")
    made = metal_kernel(
        kernel.name,
        [array.name for array in inputs],
        [array.name for array in outputs],
        kernel.texts["source"],
        kernel.texts["header"],
        ensure_row_contiguous=launch.pop("ensure_row_contiguous"),
        atomic_outputs=launch.pop("atomic_outputs"),
    )
    with use("host"):
        results = made(
            inputs=[to_mlx(array) for array in inputs],
            output_shapes=[array.shape for array in outputs],
            output_dtypes=[getattr(mx, array.dtype) for array in outputs],
            **launch,
        )
        mx.eval(results)
    return [to_numpy(array) for array in results]


def check_outputs(row: Row, got: list[np.ndarray[Any, Any]]) -> None:
    for want, have in zip(wanted(row), got, strict=True):
        if want is not None:
            assert want.size == have.size
            assert have.tobytes() == want.astype(have.dtype).tobytes(), (want, have)


def test_every_kind_is_planted() -> None:
    planted = {kind for row in FAULTY for mark in row.faulty.marks if mark.role == "fault" for kind in mark.kinds}
    assert planted == set(Kind) - {Kind.CRASH}
    assert len(FAULTY) >= 60


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_twins_compute(row: Row) -> None:
    check_outputs(row, run(row.twin))
