"""What every trellis kernel asks of its arrays."""

from __future__ import annotations

import mlx.core as mx

from mlx_assay.impl.kernels.graph import native
from mlx_assay.impl.kernels.trellis.geometry import Geometry
from mlx_assay.impl.kernels.trellis.launch import BLOCK, CODEBOOK_STATES

DTYPES = (mx.float32, mx.float16, mx.bfloat16)
_LARGEST_L = CODEBOOK_STATES.bit_length() - 1


def check_codes(operation: str, codes: mx.array, geometry: Geometry) -> None:
    """ValueError or TypeError: codes that are not the geometry's words; RuntimeError: a trace no kernel can run in."""
    _check_array(operation, "codes", codes)
    if codes.dtype != mx.uint32:
        raise ValueError(f"{operation}: expected codes of uint32 but got {codes.dtype}: view the words as uint32")
    if tuple(codes.shape) != geometry.code_shape:
        raise ValueError(
            f"{operation}: expected codes of shape {geometry.code_shape} ({geometry.words_per_block} words a block) "
            f"but got {tuple(codes.shape)}: pack them for {geometry}"
        )
    if native(codes):
        raise RuntimeError(
            f"{operation}: expected concrete arrays but got arrays of a trace that this kernel cannot run in: "
            "call it outside of mx.compile"
        )


def check_scales(operation: str, scales: mx.array, geometry: Geometry) -> None:
    """ValueError or TypeError: scales that are not one float a stored row."""
    _check_float(operation, "scales", scales)
    if tuple(scales.shape) != (geometry.rows,):
        raise ValueError(
            f"{operation}: expected scales of shape {(geometry.rows,)}, one a stored row, but got {tuple(scales.shape)}"
        )


def check_row(operation: str, x: mx.array, geometry: Geometry) -> None:
    """ValueError or TypeError: x that is not one row of floats, or a geometry that no single-row kernel takes."""
    _check_float(operation, "x", x)
    if geometry.axis != 0 or geometry.T != BLOCK or geometry.L > _LARGEST_L or geometry.cols % BLOCK:
        raise ValueError(
            f"{operation}: expected axis-0 codes with T {BLOCK}, L <= {_LARGEST_L} and cols a multiple of {BLOCK} "
            f"but got axis {geometry.axis}, T {geometry.T}, L {geometry.L} and cols {geometry.cols}"
        )
    if tuple(x.shape) != (1, geometry.rows):
        raise ValueError(
            f"{operation}: expected x of shape {(1, geometry.rows)}, one activation row over the stored rows, "
            f"but got {tuple(x.shape)}"
        )


def output_type(operation: str, x: mx.array, output_dtype: mx.Dtype | None) -> mx.Dtype:
    """The dtype asked for, or x's. TypeError: no dtype. ValueError: no float dtype."""
    dtype = x.dtype if output_dtype is None else output_dtype
    if not isinstance(dtype, mx.Dtype):
        raise TypeError(
            f"{operation}: expected output_dtype as an mx.Dtype but got {dtype!r} (type {type(dtype).__name__}): use "
            "mx.float32, mx.float16 or mx.bfloat16"
        )
    if dtype not in DTYPES:
        raise ValueError(f"{operation}: expected output_dtype of float32, float16 or bfloat16 but got {output_dtype}")
    return dtype


def _check_array(operation: str, name: str, array: object) -> None:
    if not isinstance(array, mx.array):
        raise TypeError(f"{operation}: expected {name} as an mx.array but got {type(array).__name__}: use mx.array")


def _check_float(operation: str, name: str, array: mx.array) -> None:
    _check_array(operation, name, array)
    if array.dtype not in DTYPES:
        raise ValueError(
            f"{operation}: expected {name} of float32, float16 or bfloat16 but got {array.dtype}: use astype"
        )
