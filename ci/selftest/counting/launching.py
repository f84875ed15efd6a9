"""One small kernel, launched and counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import Counts, counted, metal_kernel, use

THREAD = "const uint i = thread_position_in_grid.x;\n"


def count(
    source: str,
    *inputs: Any,
    grid: int | Sequence[int] = 32,
    threadgroup: int | Sequence[int] = 32,
    output: tuple[Sequence[int], Any] = ((64,), mx.float32),
    header: str = "",
    init: float | None = 0,
) -> Counts:
    """The counts of a kernel whose inputs are x, y, z and whose output is out, over `i`, the thread's place."""
    names = ["x", "y", "z"][: len(inputs)]
    kernel = metal_kernel("counted", names, ["out"], THREAD + source, header, atomic_outputs="atomic" in source)
    with use("host"), counted() as counts:
        made = kernel(
            inputs=list(inputs),
            output_shapes=[tuple(output[0])],
            output_dtypes=[output[1]],
            grid=_axes(grid),
            threadgroup=_axes(threadgroup),
            init_value=init,
        )
        mx.eval(made)
    assert len(counts) == 1
    return counts[0]


def floats(count: int) -> Any:
    """float32 [count]: 0, 1, 2 ..."""
    return mx.arange(count, dtype=mx.float32)


def _axes(value: int | Sequence[int]) -> tuple[int, int, int]:
    return (value, 1, 1) if isinstance(value, int) else (value[0], value[1], value[2])
