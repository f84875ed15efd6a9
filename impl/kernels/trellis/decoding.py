"""Decoding on the device: whole matrices by any variant, and code values of byte sums by any form."""

from __future__ import annotations

import math
from functools import cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.kernels.text import metal_text
from mlx_assay.impl.kernels.trellis.codebook import (
    FORMS,
    LARGEST_VARIANT,
    ROUNDED_BELOW,
    VARIANTS,
    decoder_variant,
    lut_for,
)
from mlx_assay.impl.kernels.trellis.geometry import Geometry
from mlx_assay.impl.kernels.trellis.launch import CODEBOOK_STATES, DECODE_ROWS, DECODE_THREADS, VALUE_THREADS
from mlx_assay.impl.kernels.trellis.operands import check_codes, check_scales

SUM_FORMS = ("precise", "refined", "unrefined", "integer", "bits")
"""Forms that are functions of the byte sum alone."""


def decode(
    codes: mx.array,
    geometry: Geometry,
    variant: int = LARGEST_VARIANT,
    scales: mx.array | None = None,
    form: str | None = None,
) -> mx.array:
    """The stored matrix, float32 [rows, cols].

    Args:
        codes: uint32 words of the geometry's code_shape.
        geometry: either axis, plain or interleaved.
        variant: 0 to 13. The scaled weight is rounded to bfloat16 (and kept in float32) by 0 to 3, else the float32
            product code * scale; 4 decodes the state as a number; 7 to 13 decode as 6 does.
        scales: [rows] of f32, f16 or bf16; without them the bare code values come, unrounded.
        form: one of FORMS, to take the place of the variant's; the variant still says whether weights are rounded.

    Raises:
        TypeError, ValueError: arrays, a variant or a form that do not fit.
        RuntimeError: inside a trace that the executor cannot run in.
    """
    chosen = _form(variant, form)
    check_codes("decode", codes, geometry)
    if scales is not None:
        check_scales("decode", scales, geometry)
    if chosen == "lut-threadgroup" and 1 << geometry.L > CODEBOOK_STATES:
        raise ValueError(
            f"decode: expected 2^L of {CODEBOOK_STATES} states or fewer for the form 'lut-threadgroup' "
            f"but got L {geometry.L}: use 'lut-device'"
        )
    unused = mx.zeros(1)
    rounded = scales is not None and decoder_variant(variant) < ROUNDED_BELOW
    flags = [int(flag) for flag in (geometry.block_interleave is not None, scales is not None, rounded)]
    layout = [geometry.rows, geometry.cols, geometry.T, geometry.k, geometry.L, *flags]
    (out,) = _decode_kernel()(
        inputs=[
            codes,
            unused if scales is None else scales,
            lut_for(geometry.L) if chosen.startswith("lut") else unused,
            mx.array(layout, mx.uint32),
        ],
        template=[("FORM", FORMS.index(chosen)), ("STATES", CODEBOOK_STATES)],
        grid=(
            math.ceil(geometry.cols / DECODE_THREADS) * DECODE_THREADS,
            math.ceil(geometry.rows / DECODE_ROWS),
            1,
        ),
        threadgroup=(DECODE_THREADS, 1, 1),
        output_shapes=[(geometry.rows, geometry.cols)],
        output_dtypes=[mx.float32],
    )
    return out


def code_values(sums: mx.array, form: str) -> mx.array:
    """float32 [n]: what a form makes of byte sums, -510 to 510, those included that no state has.

    ValueError: sums that are no int32 [n], or a form that does not start from the sum (SUM_FORMS do).
    """
    if form not in SUM_FORMS:
        raise ValueError(f"code_values: expected one of the forms {', '.join(SUM_FORMS)} but got {form!r}")
    if sums.dtype != mx.int32 or sums.ndim != 1 or sums.size == 0:
        raise ValueError(f"code_values: expected sums as int32 [n] but got {sums.dtype} of shape {tuple(sums.shape)}")
    (out,) = _value_kernel()(
        inputs=[sums],
        template=[("FORM", FORMS.index(form))],
        grid=(math.ceil(sums.size / VALUE_THREADS) * VALUE_THREADS, 1, 1),
        threadgroup=(VALUE_THREADS, 1, 1),
        output_shapes=[(sums.size,)],
        output_dtypes=[mx.float32],
    )
    return out


def _form(variant: int, form: str | None) -> str:
    if not isinstance(variant, int) or isinstance(variant, bool) or not 0 <= variant <= LARGEST_VARIANT:
        raise ValueError(f"decode: expected variant 0 to {LARGEST_VARIANT} but got {variant!r}")
    if form is None:
        return VARIANTS[decoder_variant(variant)]
    if form not in FORMS:
        raise ValueError(f"decode: expected one of the forms {', '.join(FORMS)} but got {form!r}")
    return form


@cache
def _decode_kernel() -> executors.Kernel:
    return executors.metal_kernel(
        name="trellis_decode",
        input_names=["codes", "scales", "lut", "layout"],
        output_names=["out"],
        header=metal_text("trellis/codebook") + metal_text("trellis/window"),
        source=metal_text("trellis/decode"),
    )


@cache
def _value_kernel() -> executors.Kernel:
    return executors.metal_kernel(
        name="trellis_code_values",
        input_names=["sums"],
        output_names=["out"],
        header=metal_text("trellis/codebook"),
        source=metal_text("trellis/values"),
    )
