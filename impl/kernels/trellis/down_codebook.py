"""The down projection of one activation row through a codebook in threadgroup memory."""

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
    BLOCK,
    CODEBOOK_DOWN_THREADS,
    CODEBOOK_LOOKED_UP,
    CODEBOOK_POSITIONS,
    CODEBOOK_ROWS_AHEAD,
    CODEBOOK_STATES,
    SIMD_WIDTH,
    SPLITS,
    SPLITS_A_THREADGROUP,
    SUM_ROWS,
)
from mlx_assay.impl.kernels.trellis.operands import check_codes, check_row, check_scales, output_type

WINDOWS = ("portable", "byte-offset")
"""How a state becomes an address: by its index, or, right only where probe_misaligned_window(), with two bits more."""


def down_codebook_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    geometry: Geometry,
    window: str = "portable",
    output_dtype: mx.Dtype | None = None,
) -> mx.array:
    """x times the stored matrix of 2- or 4-bit codes, bit for bit scatter_row's result.

    In float32: each of 128 splits of the rows adds fma(code * scale, x, .) in ascending order from +0, code being the
    unrefined value; MLX's column sum adds the splits (see column_sum); one rounding to the output's dtype.

    Args:
        x: [1, rows] of f32, f16 or bf16.
        codes: uint32 [rows, cols * k / 32].
        scales: [rows] of f32, f16 or bf16.
        geometry: axis 0, T 256, L 12 at most, k 2 or 4, no interleave.
        window: one of WINDOWS; byte-offset has a misaligned load for its purpose.
        output_dtype: f32, f16 or bf16 instead of x's dtype.

    Returns:
        [1, cols].

    Raises:
        TypeError, ValueError: arrays or a geometry that do not fit.
        RuntimeError: inside a trace that the executor cannot run in.
    """
    operation = "down_codebook_row"
    if geometry.block_interleave is not None or geometry.k not in (2, 4):
        raise ValueError(f"{operation}: expected row-major codes with k 2 or 4 but got {_layout(geometry)}")
    return _row(operation, x, codes, scales, geometry, window, output_dtype)


def down_k3_interleaved_codebook_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    geometry: Geometry,
    window: str = "portable",
    output_dtype: mx.Dtype | None = None,
) -> mx.array:
    """down_codebook_row for 3-bit codes with interleaved blocks, uint32 [cols / 512, rows, 48]."""
    operation = "down_k3_interleaved_codebook_row"
    if geometry.block_interleave != 2 or geometry.k != 3:
        raise ValueError(f"{operation}: expected block-interleaved codes with k 3 but got {_layout(geometry)}")
    return _row(operation, x, codes, scales, geometry, window, output_dtype)


def factored_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    geometry: Geometry,
    output_dtype: mx.Dtype | None = None,
) -> mx.array:
    """The same product with unscaled codes: fma(y, scale * x, .), and each output times 1 / 147.8 once.

    Not the bits of down_codebook_row. In float32, where nothing overflows or is denormal, both lie within
    (ceil(rows / 128) + 38) * 2^-24 * sum |code * scale * x| of the exact sum, hence within twice that of each other.
    Takes every layout that either codebook kernel takes; arguments, result and errors are theirs.
    """
    operation = "factored_row"
    if (geometry.k == 3) != (geometry.block_interleave == 2):
        raise ValueError(
            f"{operation}: expected row-major codes with k 2 or 4, or block-interleaved ones with k 3, "
            f"but got {_layout(geometry)}"
        )
    return _row(operation, x, codes, scales, geometry, "portable", output_dtype, factored=True)


def _layout(geometry: Geometry) -> str:
    return f"{'row-major' if geometry.block_interleave is None else 'block-interleaved'} codes with k {geometry.k}"


def _row(
    operation: str,
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    geometry: Geometry,
    window: str,
    output_dtype: mx.Dtype | None,
    factored: bool = False,
) -> mx.array:
    if window not in WINDOWS:
        raise ValueError(f"{operation}: expected window of {', '.join(WINDOWS)} but got {window!r}")
    check_row(operation, x, geometry)
    check_codes(operation, codes, geometry)
    check_scales(operation, scales, geometry)
    dtype = output_type(operation, x, output_dtype)
    return run(_graph(geometry, dtype, window, factored), x, codes, scales)


@lru_cache(maxsize=512)
def _graph(geometry: Geometry, dtype: mx.Dtype, window: str, factored: bool) -> Graph:
    """From x, codes and scales to the row."""
    return lambda x, codes, scales: column_sum(_partials(x, codes, scales, geometry, window, factored), dtype, factored)


def _partials(
    x: mx.array, codes: mx.array, scales: mx.array, geometry: Geometry, window: str, factored: bool
) -> mx.array:
    """float32 [32, cols]: sums of splits, the first stage of the column sum done."""
    threads = CODEBOOK_DOWN_THREADS[executors.current()]
    blocks = threads // (SIMD_WIDTH * SPLITS_A_THREADGROUP)
    (partial,) = _kernel()(
        inputs=[x, codes, scales],
        template=[
            ("K", geometry.k),
            ("L", geometry.L),
            ("POSITIONS", CODEBOOK_POSITIONS),
            ("LOOKED_UP", CODEBOOK_LOOKED_UP),
            ("AHEAD", CODEBOOK_ROWS_AHEAD),
            ("BLOCK", BLOCK),
            ("SPLITS", SPLITS),
            ("SUM_ROWS", SUM_ROWS),
            ("THREADS", threads),
            ("STATES", CODEBOOK_STATES),
            ("ROW_WORDS", geometry.code_shape[-1] if executors.current() == "cuda" else 0),
            ("INTERLEAVED", geometry.block_interleave is not None),
            ("FACTORED", factored),
            ("BYTE_OFFSET", window == "byte-offset"),
        ],
        grid=(threads, SUM_ROWS * math.ceil(geometry.blocks / blocks), 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[(SUM_ROWS, geometry.cols)],
        output_dtypes=[mx.float32],
    )
    return partial


@cache
def _kernel() -> executors.Kernel:
    parts = ("codebook", "window", "down_codebook_row")
    return executors.metal_kernel(
        name="trellis_down_codebook",
        input_names=["x", "codes", "scales"],
        output_names=["partial"],
        header="".join(metal_text(f"trellis/{part}") for part in parts),
        source=metal_text("trellis/down_codebook"),
    )
