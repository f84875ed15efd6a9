"""Integer division in Apple's compiled kernels: a result for every pair of operands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

A = np.array([7, -7, -(2**31), 9], np.int32)
B = np.array([0, 0, -1, 4], np.int32)


@pytest.mark.parametrize(
    ("operation", "want"),
    [
        ("sdiv", [-1, -1, -(2**31), 2]),
        ("srem", [7, -7, 0, 1]),
        ("udiv", [-1, -1, 0, 2]),
        ("urem", [7, -7, -(2**31), 1]),
    ],
)
def test_no_pair_of_operands_traps(forge: Any, operation: str, want: list[int]) -> None:
    kernel = forge.kernel(forge.elementwise(f"%r = {operation} i32 %x0, %x1", "ii", "i", ""))
    assert forge.run(kernel, A, B, output="i").tolist() == want
