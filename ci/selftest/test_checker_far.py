"""Writes under the checker that lie far from every array, yet in the span of one: each is told of, none is marked."""

from __future__ import annotations

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Kind, check


@pytest.mark.parametrize("place", ["1l << 30", "-(1l << 30)", "1l << 33"])
def test_a_far_write_is_outside(place: str) -> None:
    body = f"uint i = thread_index_in_threadgroup;\ny[i] = x[i];\nif (i == 3) y[{place}] = 1;"
    kernel = metal_kernel("far", ["x"], ["y"], body)

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(32).astype(mx.float32)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(32,)],
            output_dtypes=[mx.float32],
        )

    with use("host"):
        (out,), findings = check(call)
    assert out.tolist() == list(range(32))
    assert [(one.kind, one.array, one.place.line) for one in findings if one.place] == [(Kind.OUT_OF_BOUNDS, "y", 3)]
