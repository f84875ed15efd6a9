"""Atomic accesses under the checker that go beyond an array by half, and plain writes beside a fence."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Kind, check

FENCE = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);"


def found(body: str, dtype: Any, size: int, groups: int = 1) -> list[tuple[Any, ...]]:
    """Kind, array and index of what is found in threadgroups of 32 threads with an output y."""
    kernel = metal_kernel("k", ["x"], ["y"], f"uint i = thread_position_in_grid.x;\n{body}")

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(64, dtype=mx.uint32)],
            grid=(32 * groups, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(size,)],
            output_dtypes=[dtype],
        )

    with use("host"):
        return [(one.kind, one.array, one.index) for one in check(call)[1]]


def test_an_atomic_read_that_goes_beyond_by_half_writes_nothing() -> None:
    # y[63] is the half of it that lies inside.
    load = "atomic_load_explicit((device atomic_uint*)((device uchar*)y + 126), memory_order_relaxed)"
    told = found(
        f"y[i] = i; if (i < 31) y[i + 32] = i; if (i == 3) {{ uint k = {load}; if (k == 77) y[0] = k; }}", mx.uint16, 64
    )
    assert (Kind.OUT_OF_BOUNDS, "y", 63) in told
    assert (Kind.UNWRITTEN, "y", 63) in told


def test_a_plain_write_before_a_fence_acquires_nothing() -> None:
    body = (
        "if (i > 1 && i < 20) y[i] = 0;\nif (i > 31 && i < 44) y[i - 12] = 0;\n"
        f"if (i == 0) {{ y[0] = 5;\n{FENCE}\ny[1] = 1; }}\n"
        f"if (i == 32) {{ uint k = y[1];\n{FENCE}\nif (k == 1) k += y[0]; if (k == 77) y[20] = k; }}"
    )
    races = {index for kind, array, index in found(body, mx.uint32, 32, 2) if kind is Kind.THREADGROUP_RACE}
    assert races == {0, 1}
