"""MLX's column sum over the partials of 128 splits, with its order of additions written out."""

from __future__ import annotations

import math
from functools import cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.kernels.text import metal_text
from mlx_assay.impl.kernels.trellis.launch import FOLD_THREADS, SIMD_WIDTH, SPLITS, SUM_ROWS


def column_sum(partial: mx.array, output_dtype: mx.Dtype = mx.float32, factored: bool = False) -> mx.array:
    """[1, C]: the sum of the rows, bit for bit that of MLX's col_reduce_looped in tiles of 32 x 32.

    The order is ((0 + p[y]) + p[y + 32] + p[y + 64]) + p[y + 96] in each of 32 lanes, then simd_sum; one cast last.

    Args:
        partial: float32 [128, C], or [32, C] of lanes' totals, to which nothing is added in the first stage.
        output_dtype: f32, f16 or bf16.
        factored: multiply the sum by 1 / 147.800537109375 before the cast.

    ValueError: partials of another dtype or number of rows.
    """
    if partial.dtype != mx.float32 or partial.ndim != 2 or partial.shape[0] not in (SPLITS, SUM_ROWS):
        raise ValueError(
            f"column_sum: expected float32 partials [{SPLITS}, C] or [{SUM_ROWS}, C] "
            f"but got {partial.dtype} of shape {tuple(partial.shape)}"
        )
    rows, columns = partial.shape
    (out,) = _kernel()(
        inputs=[partial],
        template=[
            ("T", output_dtype),
            ("ROWS", rows),
            ("THREADS", FOLD_THREADS),
            ("FACTORED", factored),
        ],
        grid=(math.ceil(columns * SIMD_WIDTH / FOLD_THREADS) * FOLD_THREADS, 1, 1),
        threadgroup=(FOLD_THREADS, 1, 1),
        output_shapes=[(1, columns)],
        output_dtypes=[output_dtype],
    )
    return out


@cache
def _kernel() -> executors.Kernel:
    return executors.metal_kernel(
        name="trellis_fold",
        input_names=["partial"],
        output_names=["out"],
        header=metal_text("trellis/codebook"),
        source=metal_text("trellis/fold"),
    )
