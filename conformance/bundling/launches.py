"""The launches of one call, as a file tells of them: kernels' texts, what they were called with, and what they gave."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import ml_dtypes
import msgspec
import numpy as np
from msgspec import Meta

from mlx_assay.conformance.adapters.launches import (
    MOST_BUFFERS,
    MOST_TEMPLATE,
    Axis,
    Bool,
    Dtype,
    DtypeName,
    Int,
    Name,
    Shape,
    Text,
    ThreadgroupAxis,
)
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.fixtures import codec

MOST_LAUNCHES = 256
"""Of one call; what launches more is told of without them."""

LARGEST = 64 << 20
"""Bytes of one call's arrays, and of a file that tells of them beside its texts."""

DOCUMENT = "launches.json"
"""The tensor of bytes that holds the document."""

NUMPY: dict[str, np.dtype[np.generic]] = {
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{"bool": np.dtype(np.bool_), "float16": np.dtype(np.float16), "float32": np.dtype(np.float32)},
    **{"bfloat16": np.dtype(ml_dtypes.bfloat16), "float64": np.dtype(np.float64)},
}

AnyDtype = Literal[DtypeName, "float64"]
"""Those of Metal, and one that an argument may have which a contract refuses."""

Place = Annotated[int, Meta(ge=0, lt=MOST_LAUNCHES)]
Key = Annotated[str, Meta(max_length=500)]
Strides = Annotated[list[Annotated[int, Meta(ge=-(2**40), le=2**40)]], Meta(max_length=16)]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Buffer(_Strict, frozen=True, kw_only=True):
    """An array: the tensor with its bytes, row by row. `strides`, in elements, where the kernel saw it otherwise.

    The tensor is empty for an output of a launch that did not come to its end. `made_by` names the launch, and the
    place among its outputs, that made an input's memory; null for what came from elsewhere.
    """

    tensor: Key
    dtype: AnyDtype
    shape: Shape
    strides: Strides | None = None
    made_by: tuple[Place, Annotated[int, Meta(ge=0, lt=MOST_BUFFERS)]] | None = None


class Kernel(_Strict, frozen=True, kw_only=True):
    """What mx.fast.metal_kernel was given."""

    name: Name
    input_names: Annotated[list[Name], Meta(max_length=MOST_BUFFERS)]
    output_names: Annotated[list[Name], Meta(max_length=MOST_BUFFERS)]
    source: Text
    header: Text = ""
    ensure_row_contiguous: bool = True
    atomic_outputs: bool = False
    math_mode: Literal["safe", "relaxed", "fast"] = "safe"


class Launch(_Strict, frozen=True, kw_only=True):
    """One call of a kernel, which is named by its place. `init_value` is a float in hexadecimal."""

    kernel: Place
    inputs: Annotated[list[Buffer], Meta(max_length=MOST_BUFFERS)]
    outputs: Annotated[list[Buffer], Meta(max_length=MOST_BUFFERS)]
    grid: tuple[Axis, Axis, Axis]
    threadgroup: tuple[ThreadgroupAxis, ThreadgroupAxis, ThreadgroupAxis]
    template: Annotated[list[Dtype | Int | Bool], Meta(max_length=MOST_TEMPLATE)] = []
    init_value: Annotated[str, Meta(max_length=40)] | None = None


class Launches(_Strict, frozen=True, kw_only=True):
    """The launches of one call in their order; `omitted` says why they are not all there, or is empty."""

    kernels: Annotated[list[Kernel], Meta(max_length=MOST_LAUNCHES)] = []
    launches: Annotated[list[Launch], Meta(max_length=MOST_LAUNCHES)] = []
    omitted: Annotated[str, Meta(max_length=1000)] = ""


def encode(launches: Launches, pool: Pool) -> bytes:
    """The file's bytes."""
    document = np.frombuffer(msgspec.json.encode(launches), np.uint8)
    return codec.encode({DOCUMENT: document, **pool.tensors}, {})


def decode(data: bytes) -> tuple[Launches, Pool]:
    """Reads a file as if an enemy had written it; ValueError says what is wrong with it."""
    tensors = codec.decode(data).tensors
    if DOCUMENT not in tensors:
        raise ValueError(f"Expected a tensor {DOCUMENT!r} but got {', '.join(map(repr, list(tensors)[:5])) or 'none'}")
    document = tensors.pop(DOCUMENT).tobytes()
    try:
        launches = msgspec.json.decode(document, type=Launches)
    except RecursionError:
        raise ValueError("Expected a flat document but it is nested too deep") from None
    pool = Pool(tensors)
    check(launches, pool)
    return launches, pool


def check(launches: Launches, pool: Pool) -> None:
    """ValueError: a launch names a kernel or a tensor that is not there, or that does not fit it."""
    for index, launch in enumerate(launches.launches):
        if launch.kernel >= len(launches.kernels):
            raise ValueError(f"Expected a kernel, one of {len(launches.kernels)}, but got number {launch.kernel}")
        kernel = launches.kernels[launch.kernel]
        named, given = (
            (len(kernel.input_names), len(kernel.output_names)),
            (len(launch.inputs), len(launch.outputs)),
        )
        if named != given:
            raise ValueError(f"Expected {named} inputs and outputs of {kernel.name!r} but got {given}")
        for buffer in (*launch.inputs, *launch.outputs):
            if buffer.tensor or buffer in launch.inputs:
                pool.array(buffer.tensor, NUMPY[buffer.dtype], buffer.shape)
            if buffer.made_by is not None:
                _check_maker(buffer, launches.launches[:index])
            if buffer.strides is not None and len(buffer.strides) != len(buffer.shape):
                raise ValueError(f"Expected {len(buffer.shape)} strides but got {buffer.strides}")


def _check_maker(buffer: Buffer, earlier: list[Launch]) -> None:
    launch, place = buffer.made_by or (0, 0)
    if launch >= len(earlier) or place >= len(earlier[launch].outputs):
        raise ValueError(f"Expected an output of one of {len(earlier)} earlier launches but got {buffer.made_by}")
    made = earlier[launch].outputs[place]
    if _size(made) != _size(buffer):
        raise ValueError(f"Expected an output of {_size(buffer)} bytes but got {buffer.made_by} with {_size(made)}")


def _size(buffer: Buffer) -> int:
    return math.prod(buffer.shape) * NUMPY[buffer.dtype].itemsize
