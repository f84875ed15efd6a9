"""Whether a device's loads from threadgroup memory ignore the two lowest address bits."""

from __future__ import annotations

from functools import cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.kernels.text import metal_text

ENTRIES = 32


def probe_misaligned_window() -> bool:
    """True where a float load at byte offset 4 i + j, j of 0 to 3, gives entry i: what window="byte-offset" relies on.

    The load is no defined behaviour of Metal's, so that the answer holds for the device that gave it, and no other.
    """
    offsets = mx.arange(4 * ENTRIES, dtype=mx.uint32)
    (out,) = _kernel()(
        inputs=[offsets],
        template=[("ENTRIES", ENTRIES)],
        grid=(offsets.size, 1, 1),
        threadgroup=(offsets.size, 1, 1),
        output_shapes=[(offsets.size,)],
        output_dtypes=[mx.float32],
    )
    return bool(mx.array_equal(out, (offsets // 4 + 1).astype(mx.float32)).item())


@cache
def _kernel() -> executors.Kernel:
    return executors.metal_kernel(
        name="trellis_misaligned_window",
        input_names=["offsets"],
        output_names=["out"],
        source=metal_text("trellis/misalignment"),
    )
