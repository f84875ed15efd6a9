"""The down projection of one activation row without a codebook: the bits that the codebook kernels must equal."""

from __future__ import annotations

import math
from functools import cache, lru_cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.kernels.graph import Graph, run
from mlx_assay.impl.kernels.text import metal_text
from mlx_assay.impl.kernels.trellis.fold import column_sum
from mlx_assay.impl.kernels.trellis.geometry import Geometry
from mlx_assay.impl.kernels.trellis.launch import (
    BALANCED_POSITIONS,
    BLOCK,
    ROWS_AHEAD,
    SCATTER_SIMDGROUPS,
    SCATTER_THREADS,
    SIMD_WIDTH,
    SPLITS,
)
from mlx_assay.impl.kernels.trellis.operands import check_codes, check_row, check_scales, output_type

KERNELS = ("plain", "balanced")
"""plain: a lane a packed word. balanced: a lane eight positions, which 3-bit codes share out evenly."""


def scatter_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    geometry: Geometry,
    kernel: str | None = None,
    output_dtype: mx.Dtype | None = None,
) -> mx.array:
    """x times the stored matrix, every code decoded where it is used; the arithmetic is down_codebook_row's.

    Args:
        x: [1, rows] of f32, f16 or bf16.
        codes: uint32 [rows, cols * k / 32], or [cols / 512, rows, 48].
        scales: [rows] of f32, f16 or bf16.
        geometry: axis 0, T 256, L 12 at most, any k and layout.
        kernel: one of KERNELS; without it balanced for k 3 and plain for k 2 and 4, as variant 13 selects.
        output_dtype: f32, f16 or bf16 instead of x's dtype.

    Returns:
        [1, cols].

    Raises:
        TypeError, ValueError: arrays, a geometry or a kernel that do not fit.
        RuntimeError: inside a trace that the executor cannot run in.
    """
    if kernel not in (None, *KERNELS):
        raise ValueError(f"scatter_row: expected kernel of {', '.join(KERNELS)} or None but got {kernel!r}")
    check_row("scatter_row", x, geometry)
    check_codes("scatter_row", codes, geometry)
    check_scales("scatter_row", scales, geometry)
    dtype = output_type("scatter_row", x, output_dtype)
    balanced = geometry.k == 3 if kernel is None else kernel == "balanced"
    return run(_graph(geometry, dtype, balanced), x, codes, scales)


@lru_cache(maxsize=512)
def _graph(geometry: Geometry, dtype: mx.Dtype, balanced: bool) -> Graph:
    """From x, codes and scales to the row."""
    return lambda x, codes, scales: column_sum(_partials(x, codes, scales, geometry, balanced), dtype)


def _partials(x: mx.array, codes: mx.array, scales: mx.array, geometry: Geometry, balanced: bool) -> mx.array:
    """float32 [128, cols]: sums of splits."""
    blocks_a_simdgroup = 1 if balanced else SIMD_WIDTH // geometry.words_per_block
    groups = math.ceil(geometry.blocks / blocks_a_simdgroup)
    (partial,) = _kernel("balanced" if balanced else "scatter")(
        inputs=[x, codes, scales],
        template=[
            ("K", geometry.k),
            ("L", geometry.L),
            *([("POSITIONS", BALANCED_POSITIONS)] if balanced else []),
            ("AHEAD", ROWS_AHEAD),
            ("BLOCK", BLOCK),
            ("SPLITS", SPLITS),
            ("THREADS", SCATTER_THREADS),
            ("INTERLEAVED", geometry.block_interleave is not None),
        ],
        grid=(SCATTER_THREADS, math.ceil(groups / SCATTER_SIMDGROUPS), SPLITS),
        threadgroup=(SCATTER_THREADS, 1, 1),
        output_shapes=[(SPLITS, geometry.cols)],
        output_dtypes=[mx.float32],
    )
    return partial


@cache
def _kernel(name: str) -> executors.Kernel:
    return executors.metal_kernel(
        name=f"trellis_{name}_row",
        input_names=["x", "codes", "scales"],
        output_names=["partial"],
        header=metal_text("trellis/codebook") + metal_text("trellis/window"),
        source=metal_text(f"trellis/{name}"),
    )
