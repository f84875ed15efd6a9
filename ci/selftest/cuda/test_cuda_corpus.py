"""The checker's sound kernels on a GPU: their outputs are what the rows want, else what the host gives."""

import pytest
from checker.corpus import Row, rows, wanted
from checker.launching import launched
from machine import NEEDS_GPU

from mlx_assay.impl.executors import use
from mlx_assay.impl.executors.fidelity import switched

pytestmark = NEEDS_GPU
ROWS = list(rows())


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_sound_kernel(row: Row) -> None:
    with use("cuda"):
        got = launched(row.twin)
    if row.want:
        want = wanted(row)
    else:
        with use("host"), switched(f32_denormals="kept"):
            want = list(launched(row.twin))
    assert len(got) == len(want)
    for have, told in zip(got, want, strict=True):
        assert told is None or have.tobytes() == told.astype(have.dtype).tobytes(), (have, told)
