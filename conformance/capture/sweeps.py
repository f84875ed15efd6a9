"""Sweeps of functions whose last bits Metal leaves open: every half and bfloat, and a stream of 2^20 floats."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from mlx_assay.conformance.capture.document import Sweep, Worst
from mlx_assay.conformance.capture.reference import FUNCTIONS, rounded
from mlx_assay.conformance.judging.ulp import (
    MANTISSA_BITS,
    distances,
    infinity,
    is_denormal,
    is_nan,
    is_zero,
    magnitudes,
)
from mlx_assay.impl import executors

DTYPES: dict[str, np.dtype[Any]] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
}
WAYS = ("precise", "fast", "plain")
STREAM = 1 << 20
_A_THREAD = 64
_TYPES = {"float16": ("half", "ushort"), "bfloat16": ("bfloat16_t", "ushort"), "float32": ("float", "uint")}


@cache
def stream(dtype: str) -> np.ndarray:
    """All encodings of a half type in order; of float32 one of each 4,096 neighbours, place i of 2^20.

    The lower twelve bits are those of i after MurmurHash3's finalizer: encoding i << 12 | mixed(i) & 0xfff.
    """
    if dtype != "float32":
        return np.arange(1 << 16, dtype=np.uint16).view(DTYPES[dtype])
    place = np.arange(STREAM, dtype=np.uint32)
    mixed = place.copy()
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return (place << np.uint32(12) | mixed & np.uint32(0xFFF)).view(np.float32)


def asked() -> Iterator[tuple[str, str, str]]:
    """Function, way and dtype of each sweep, in the order of a capture.

    Plain names of floats are the precise functions or the fast ones, as the kernel's math mode has it.
    """
    for function in FUNCTIONS:
        for way in WAYS:
            for dtype in DTYPES:
                yield function, way, dtype


def swept() -> Iterator[Sweep]:
    """Every sweep on the current executor; RuntimeError of the executor where it does not run one."""
    for function, way, dtype in asked():
        yield judged(function, way, dtype, _run(function, way, dtype))


def judged(function: str, way: str, dtype: str, results: np.ndarray) -> Sweep:
    """The digest of results, and how they stand to the correctly rounded ones."""
    arguments = stream(dtype)
    reference = _reference(function, dtype)
    normal = ordinary(arguments, reference)
    apart = distances(results, reference)
    same = apart == 0
    lost = normal & (~_finite(results) | is_zero(results) | is_denormal(results))
    rated = np.where(normal & ~lost, apart, -1)
    place = int(np.argmax(rated))
    worst = int(rated[place])
    return Sweep(
        function=function,  # type: ignore[arg-type]
        way=way,  # type: ignore[arg-type]
        dtype=dtype,  # type: ignore[arg-type]
        digest=digest(results),
        arguments=arguments.size,
        normal=int(np.count_nonzero(normal)),
        inexact=int(np.count_nonzero(normal & ~same)),
        lost=int(np.count_nonzero(lost)),
        special=int(np.count_nonzero(~normal & ~same)),
        worst_ulp=max(worst, 0),
        worst=Worst(argument=_hex(arguments, place), result=_hex(results, place), reference=_hex(reference, place))
        if worst > 0
        else None,
    )


def ordinary(arguments: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Which arguments are zero or normal and have a normal value: only there is a distance a matter of accuracy."""
    settled = _finite(arguments) & ~is_denormal(arguments)
    normal: np.ndarray = settled & _finite(reference) & ~is_denormal(reference) & ~is_zero(reference)
    return normal


def digest(results: np.ndarray) -> str:
    """SHA-256 of the encodings, little endian, each NaN as the quiet one of no payload and no sign."""
    word = np.dtype(f"<u{results.itemsize}")
    words = results.view(f"u{results.itemsize}").astype(word)
    words[is_nan(results)] = infinity(results.dtype) | 1 << (MANTISSA_BITS[results.dtype] - 1)
    return hashlib.sha256(words.tobytes()).hexdigest()


@cache
def _reference(function: str, dtype: str) -> np.ndarray:
    return rounded(function, stream(dtype))


def _finite(values: np.ndarray) -> np.ndarray:
    return np.asarray(magnitudes(values) < infinity(values.dtype))


def _word(dtype: str) -> np.dtype[Any]:
    return np.dtype(f"u{DTYPES[dtype].itemsize}")


def _hex(values: np.ndarray, place: int) -> str:
    return f"{int(values.view(f'u{values.itemsize}')[place]):0{2 * values.itemsize}x}"


def _source(dtype: str) -> str:
    """Each thread takes 64 encodings; `which` is the number of the function and the way."""
    type_, word = _TYPES[dtype]
    cases = []
    for number, (function, way) in enumerate((function, way) for function in FUNCTIONS for way in WAYS):
        call = f"{function}(v)" if way == "plain" else f"{type_}({way}::{function}(float(v)))"
        cases.append(f"case {number}: t = {call}; break;")
    return f"""
const uint first = thread_position_in_grid.x * {_A_THREAD}u;
for (uint k = 0; k < {_A_THREAD}u; k++) {{
  const {type_} v = as_type<{type_}>({word}(x[first + k]));
  {type_} t = v;
  switch (which) {{
    {chr(10).join(cases)}
  }}
  out[first + k] = as_type<{word}>(t);
}}
"""


@cache
def _kernel(dtype: str) -> Any:
    return executors.metal_kernel(f"capture_sweep_{dtype}", ["x", "which"], ["out"], _source(dtype))


def _run(function: str, way: str, dtype: str) -> np.ndarray:
    import mlx.core as mx

    words = stream(dtype).view(_word(dtype))
    number = list(FUNCTIONS).index(function) * len(WAYS) + WAYS.index(way)
    (out,) = _kernel(dtype)(
        inputs=[mx.array(words), mx.array(number, dtype=mx.uint32)],
        output_shapes=[words.shape],
        output_dtypes=[mx.uint16 if words.itemsize == 2 else mx.uint32],
        grid=(words.size // _A_THREAD, 1, 1),
        threadgroup=(256, 1, 1),
    )
    return np.array(out).view(DTYPES[dtype])
