"""The order in which an executor adds the lanes of a SIMD group, asked of it where it does not say."""

from __future__ import annotations

import numpy as np

from mlx_assay.impl import executors
from mlx_assay.oracles.fused import LANES, ORDERS, simd_sum

SOURCE = """
    const uint lane = thread_position_in_threadgroup.x;
    const uint group = threadgroup_position_in_grid.x;
    const float total = simd_sum(values[32 * group + lane]);
    if (lane == 0) { sums[group] = total; }
"""
GROUPS = 64


def measured(executor: str) -> str:
    """The one of ORDERS whose sums are the executor's in every bit, or "unknown"."""
    import mlx.core as mx

    values = probes()
    with executors.use(executor):
        kernel = executors.metal_kernel("lanes", ["values"], ["sums"], SOURCE)
        (sums,) = kernel(
            inputs=[mx.array(values)],
            grid=(LANES * GROUPS, 1, 1),
            threadgroup=(LANES, 1, 1),
            output_shapes=[(GROUPS,)],
            output_dtypes=[mx.float32],
        )
        got = np.array(sums)
    found = [order for order in ORDERS if simd_sum(values.T, order).tobytes() == got.tobytes()]
    return found[0] if len(found) == 1 else "unknown"


def probes() -> np.ndarray:
    """float32 [groups, 32]: powers of two of both signs, far apart, so that each order loses something else."""
    drawn = np.random.Philox(key=32).random_raw(GROUPS * LANES).astype(np.uint64).reshape(GROUPS, LANES)
    exponents = (drawn >> np.uint64(40)) % np.uint64(50)
    signs = np.where(drawn >> np.uint64(63), -1.0, 1.0)
    return (signs * np.exp2(exponents.astype(np.float64) - 25)).astype(np.float32)
