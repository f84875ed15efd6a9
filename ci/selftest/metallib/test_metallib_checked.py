"""Apple's compiled kernels under the checker: faults are found, at instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from mlx_assay.impl.executors.checker import Finding, Kind, checked


@pytest.fixture
def argmax(stock: Any) -> Any:
    return stock("0.32.4").function("argmax_float32")


def launch(argmax: Any, rows: int = 2, size: int = 1000) -> tuple[list[int], list[int], Sequence[Finding]]:
    """The ids, those expected, and what was found, for two rows of 1,000."""
    x = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    out, shape, step = np.zeros(2, np.uint32), np.array([2], np.int32), np.array([1000], np.int64)
    with checked() as findings:
        argmax(
            [x, out, shape, step, np.array([1], np.int64), np.uint64(1), np.int64(1), np.uint64(size)],
            threadgroup=256,
            grid=(256, rows, 1),
        )
    return out.tolist(), x.argmax(1).tolist(), findings


def test_a_sound_launch_is_clean(argmax: Any) -> None:
    got, expected, findings = launch(argmax)
    assert (got, findings) == (expected, [])


def test_rows_that_are_too_long_are_read_out_of_bounds(argmax: Any) -> None:
    _, _, findings = launch(argmax, size=1010)
    (stray,) = (f for f in findings if f.kind is Kind.OUT_OF_BOUNDS)
    assert (stray.array, stray.index) == ("in", 2000)
    assert stray.place is not None
    assert (stray.place.file, "load float" in stray.place.text) == ("bitcode", True)


def test_threadgroups_that_write_one_row_meet(argmax: Any) -> None:
    _, _, findings = launch(argmax, rows=3)
    (met,) = findings
    assert (met.kind, met.array) == (Kind.SAME_VALUE_WRITE, "out")
    assert {a.threadgroup for a in met.accesses} == {(0, 0, 0), (0, 2, 0)}
