"""The checker's sound kernels on a GPU: their outputs are what the rows want, else what the host gives."""

from typing import Any

import numpy as np
import pytest
from checker.corpus import Row, rows, wanted
from checker.launching import launched
from machine import NEEDS_GPU

from mlx_assay.impl.executors import use
from mlx_assay.impl.executors.fidelity import switched

pytestmark = NEEDS_GPU
ROWS = list(rows())


def bytes_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_sound_kernel(row: Row) -> None:
    with use("cuda"):
        got = launched(row.twin)
    if row.want:
        want = [None if each is None else bytes_of(each) for each in wanted(row)]
    else:
        with use("host"), switched(f32_denormals="kept"):
            want = list(launched(row.twin))
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert other is None or np.array_equal(one, other), (one, other)
