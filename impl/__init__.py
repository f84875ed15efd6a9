"""The kernels under judgement, and the executors that run Metal text."""

from mlx_assay.impl import trellis
from mlx_assay.impl.executors import cuda_metal, host_metal, metal_kernel
from mlx_assay.impl.kernels.normalized_argmax import argmax_given, normalized_argmax
from mlx_assay.impl.kernels.softcap import compiled_logit_softcap, logit_softcap
from mlx_assay.impl.kernels.token_bitmask import apply_token_bitmask
from mlx_assay.impl.kernels.trellis.operations import (
    down_codebook_row,
    down_k3_interleaved_codebook_row,
    factored_row,
    scatter_row,
    trellis_code_values,
    trellis_decode,
    trellis_fold,
)

__all__ = [
    "apply_token_bitmask",
    "argmax_given",
    "compiled_logit_softcap",
    "cuda_metal",
    "down_codebook_row",
    "down_k3_interleaved_codebook_row",
    "factored_row",
    "host_metal",
    "logit_softcap",
    "metal_kernel",
    "normalized_argmax",
    "scatter_row",
    "trellis",
    "trellis_code_values",
    "trellis_decode",
    "trellis_fold",
]
