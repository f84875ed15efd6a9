"""The trellis kernels as operations of plain arguments: a geometry by its numbers, a dtype by its name."""

from __future__ import annotations

import mlx.core as mx

from mlx_assay.impl.kernels.trellis import decoding, down_codebook, fold, scatter
from mlx_assay.impl.kernels.trellis.geometry import Geometry
from mlx_assay.impl.kernels.trellis.operands import DTYPES


def _geometry(k: int, L: int, T: int, axis: int, rows: int, cols: int, block_interleave: int | None) -> Geometry:
    features = (rows, cols) if axis == 0 else (cols, rows)
    return Geometry(k, L, T, axis, rows, cols, *features, block_interleave)


_DTYPES = {str(dtype).rpartition(".")[2]: dtype for dtype in DTYPES}


def _dtype(name: str | None) -> mx.Dtype | None:
    """ValueError: no name of a float dtype."""
    if name is not None and name not in _DTYPES:
        raise ValueError(
            f"Expected output_dtype as a name, {', '.join(map(repr, _DTYPES))}, or None but got {name!r} "
            f"(type {type(name).__name__}): mlx_assay.impl.trellis has these kernels for a Geometry and an mx.Dtype"
        )
    return None if name is None else _DTYPES[name]


def trellis_decode(
    codes: mx.array,
    scales: mx.array | None,
    k: int,
    L: int,
    T: int,
    axis: int,
    rows: int,
    cols: int,
    block_interleave: int | None,
    variant: int,
    form: str | None,
) -> mx.array:
    """float32 [rows, cols]: `decode` in a geometry of these numbers."""
    geometry = _geometry(k, L, T, axis, rows, cols, block_interleave)
    return decoding.decode(codes, geometry, variant, scales, form)


def trellis_code_values(sums: mx.array, form: str) -> mx.array:
    """float32 [n]: what a form makes of byte sums, -510 to 510."""
    return decoding.code_values(sums, form)


def down_codebook_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    k: int,
    L: int,
    T: int,
    axis: int,
    rows: int,
    cols: int,
    block_interleave: int | None,
    output_dtype: str | None,
) -> mx.array:
    """[1, cols]: x times a stored matrix of 2- or 4-bit codes, through a table of codes in threadgroup memory."""
    geometry = _geometry(k, L, T, axis, rows, cols, block_interleave)
    return down_codebook.down_codebook_row(x, codes, scales, geometry, output_dtype=_dtype(output_dtype))


def down_k3_interleaved_codebook_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    k: int,
    L: int,
    T: int,
    axis: int,
    rows: int,
    cols: int,
    block_interleave: int | None,
    output_dtype: str | None,
) -> mx.array:
    """[1, cols]: the same for 3-bit codes with interleaved blocks."""
    geometry = _geometry(k, L, T, axis, rows, cols, block_interleave)
    return down_codebook.down_k3_interleaved_codebook_row(x, codes, scales, geometry, output_dtype=_dtype(output_dtype))


def factored_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    k: int,
    L: int,
    T: int,
    axis: int,
    rows: int,
    cols: int,
    block_interleave: int | None,
    output_dtype: str | None,
) -> mx.array:
    """[1, cols]: the same with unscaled codes and one multiplication at the end, within a bound."""
    geometry = _geometry(k, L, T, axis, rows, cols, block_interleave)
    return down_codebook.factored_row(x, codes, scales, geometry, output_dtype=_dtype(output_dtype))


def scatter_row(
    x: mx.array,
    codes: mx.array,
    scales: mx.array,
    k: int,
    L: int,
    T: int,
    axis: int,
    rows: int,
    cols: int,
    block_interleave: int | None,
    output_dtype: str | None,
    kernel: str | None,
) -> mx.array:
    """[1, cols]: the same with every code decoded where it is used, by the "plain" or the "balanced" kernel."""
    geometry = _geometry(k, L, T, axis, rows, cols, block_interleave)
    return scatter.scatter_row(x, codes, scales, geometry, kernel, _dtype(output_dtype))


def trellis_fold(partial: mx.array, output_dtype: str) -> mx.array:
    """[1, cols]: the sum of float32 partials [1, 128, cols] as MLX sums columns, rounded once to the named dtype."""
    if partial.ndim != 3 or partial.shape[0] != 1:
        raise ValueError(f"Expected partials [1, 128, cols] but got {tuple(partial.shape)}")
    return fold.column_sum(partial[0], _dtype(output_dtype) or mx.float32)
