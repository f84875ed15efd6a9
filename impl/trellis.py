"""Trellis-coded weights: geometry, codebook, decoding, and the down projection of one activation row."""

from mlx_assay.impl.kernels.trellis.codebook import FORMS, decoder_variant, lut_1mad, lut_for
from mlx_assay.impl.kernels.trellis.decoding import SUM_FORMS, code_values, decode
from mlx_assay.impl.kernels.trellis.down_codebook import (
    WINDOWS,
    down_codebook_row,
    down_k3_interleaved_codebook_row,
    factored_row,
)
from mlx_assay.impl.kernels.trellis.fold import column_sum
from mlx_assay.impl.kernels.trellis.geometry import Geometry, words_per_block
from mlx_assay.impl.kernels.trellis.misalignment import probe_misaligned_window
from mlx_assay.impl.kernels.trellis.scatter import KERNELS, scatter_row

__all__ = [
    "FORMS",
    "KERNELS",
    "SUM_FORMS",
    "WINDOWS",
    "Geometry",
    "code_values",
    "column_sum",
    "decode",
    "decoder_variant",
    "down_codebook_row",
    "down_k3_interleaved_codebook_row",
    "factored_row",
    "lut_1mad",
    "lut_for",
    "probe_misaligned_window",
    "scatter_row",
    "words_per_block",
]
