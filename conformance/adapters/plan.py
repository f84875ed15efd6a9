"""A launch plan run in the process of what is judged, by the executor, poison, schedule and guard that hold there."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import mlx.core as mx
import msgspec
import numpy as np

from mlx_assay.conformance.adapters.inclusion import refused
from mlx_assay.conformance.adapters.launches import (
    MOST_BUFFERS,
    MOST_OUTPUT_BYTES,
    Argument,
    Constant,
    Dtype,
    Launch,
    Output,
    Plan,
    Result,
)
from mlx_assay.impl import executors

SCHEMA = "urn:mlx-assay:plan:1"
KEPT = 256
"""Kernel objects of one process: a program that writes its text anew for every shape must not fill it."""

_NUMPY: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{"bool": np.dtype(np.bool_), "float16": np.dtype(np.float16), "float32": np.dtype(np.float32)},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
_MLX: dict[str, mx.Dtype] = {name: getattr(mx, "bool_" if name == "bool" else name) for name in _NUMPY}
_Made = Sequence[Mapping[str, mx.array]]
_decode = msgspec.json.Decoder(Plan, strict=True).decode
_kernels: dict[tuple[object, ...], executors.Kernel] = {}


class PlanError(Exception):
    """A plan that is none, cannot be run, or whose kernel fails.

    It has no other base, since contracts expect ValueError and TypeError of calls: a broken plan is never their answer.
    """


def decode(document: bytes | msgspec.Raw) -> Plan:
    """Reads a plan. PlanError names the place in it that is wrong."""
    try:
        return _decode(bytes(document))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlanError(f"Expected a launch plan ({SCHEMA}) but got other JSON: {error}") from None


def schema() -> dict[str, Any]:
    """The JSON Schema of a plan, as published in plan.schema.json."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA,
        **msgspec.json.schema(Plan),
    }


def run(plan: Plan | bytes | msgspec.Raw, arguments: Mapping[str, Any]) -> mx.array:
    """The answer of a plan on the arguments of a call, by parameter name: arrays of MLX, NumPy or torch, and numbers.

    PlanError: the plan does not fit itself or the arguments, or a kernel does not compile or fails.
    """
    if not isinstance(plan, Plan):
        plan = decode(plan)
    _check_bytes(plan)
    made: list[dict[str, mx.array]] = []
    for index, launch in enumerate(plan.launches):
        where = f"launch {index}, {launch.name!r}"
        _check_names(launch, where)
        _check_texts(launch, where)
        inputs = [_input(one, arguments, made, where) for one in launch.inputs]
        made.append(_launched(launch, inputs, where))
    return _answer(plan.result, made)


def _check_bytes(plan: Plan) -> None:
    size = sum(
        math.prod(made.shape) * _NUMPY[made.dtype].itemsize for launch in plan.launches for made in launch.outputs
    )
    if size > MOST_OUTPUT_BYTES:
        raise PlanError(f"Expected outputs of at most {MOST_OUTPUT_BYTES} bytes in one plan but they take {size}")


def _check_names(launch: Launch, where: str) -> None:
    names = [one.name for one in (*launch.inputs, *launch.outputs)]
    if len(names) > MOST_BUFFERS:
        raise PlanError(f"{where}: Expected at most {MOST_BUFFERS} inputs and outputs together but got {len(names)}")
    names += [one.name for one in launch.template]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise PlanError(f"{where}: Expected a name of its own for everything but {twice[0]!r} stands twice")


def _check_texts(launch: Launch, where: str) -> None:
    for part, text in (("header", launch.header), ("source", launch.source)):
        if (found := refused(text)) is not None:
            raise PlanError(
                f"{where}: Expected to include nothing but Metal's headers, as <metal_stdlib>, and MLX's, as "
                f'"mlx/backend/metal/kernels/utils.h", but the {part} has {found!r}'
            )


def _input(one: Argument | Output | Constant, arguments: Mapping[str, Any], made: _Made, where: str) -> mx.array:
    where = f"{where}, input {one.name!r}"
    if isinstance(one, Constant):
        return _constant(one, where)
    if isinstance(one, Output):
        return _looked_at(_output(one.launch, one.output, made, where), one, where)
    if one.argument not in arguments:
        raise PlanError(f"{where}: Expected an argument, one of {', '.join(arguments)}, but got {one.argument!r}")
    return _looked_at(_array(arguments[one.argument], one.argument, where), one, where)


def _output(launch: int, name: str, made: _Made, where: str) -> mx.array:
    if launch >= len(made):
        raise PlanError(f"{where}: Expected an earlier launch, one of {len(made)}, but got number {launch}")
    if name not in made[launch]:
        names = ", ".join(made[launch])
        raise PlanError(f"{where}: Expected an output of launch {launch}, one of {names}, but got {name!r}")
    return made[launch][name]


def _array(value: Any, name: str, where: str) -> mx.array:
    """An argument as an MLX array; host arrays are copied, since their owner may change them after the call."""
    if isinstance(value, mx.array):
        return value
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if dtype not in _NUMPY or dtype == "bool":
        kind = f"{type(value).__name__} {dtype}".strip()
        raise PlanError(
            f"{where}: Expected an array of {', '.join(_MLX)} but {name!r} is {kind}: give its value as a constant"
        )
    # By bits: as values neither library takes the other's bfloat16.
    width = _NUMPY[dtype].itemsize
    if not isinstance(value, np.ndarray):
        value = value.contiguous().view(_torch_bits(width)).numpy()
    bits = np.ascontiguousarray(value).view(f"u{width}").reshape(value.shape)
    return mx.array(bits).view(_MLX[dtype])


def _torch_bits(width: int) -> Any:
    import torch

    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]


def _constant(one: Constant, where: str) -> mx.array:
    size, width = math.prod(one.shape), _NUMPY[one.dtype].itemsize
    if len(one.bits) != size:
        raise PlanError(f"{where}: Expected {size} elements for shape {one.shape} but got {len(one.bits)}")
    for text in one.bits:
        if len(text) != 2 + 2 * width:
            raise PlanError(f"{where}: Expected {2 * width} hex digits for {one.dtype} but got {text!r}")
    if one.dtype == "bool" and set(one.bits) - {"0x00", "0x01"}:
        raise PlanError(f"{where}: Expected 0x00 or 0x01 for bool but got {max(one.bits)!r}")
    values = np.array([int(text, 16) for text in one.bits], dtype=f"u{width}").reshape(one.shape)
    return mx.array(values).view(_MLX[one.dtype]) if one.dtype != "bool" else mx.array(values.view(np.bool_))


def _looked_at(array: mx.array, one: Argument | Output | Result, where: str) -> mx.array:
    if one.view is not None and array.dtype != (dtype := _MLX[one.view]):
        if array.dtype.size != dtype.size or mx.bool_ in (array.dtype, dtype):
            raise PlanError(f"{where}: Expected a view of the width of {array.dtype} but got {one.view}")
        array = array.view(dtype)
    if one.shape is not None and tuple(one.shape) != array.shape:
        if math.prod(one.shape) != array.size:
            raise PlanError(
                f"{where}: Expected a shape of {array.size} elements, as {list(array.shape)} has, but got {one.shape}"
            )
        array = array.reshape(one.shape)
    return array


def _kernel(launch: Launch) -> executors.Kernel:
    """One object a text and a way, so that Metal compiles it once."""
    inputs, outputs = tuple(one.name for one in launch.inputs), tuple(one.name for one in launch.outputs)
    modes = (launch.ensure_row_contiguous, launch.atomic_outputs, launch.math_mode)
    key = (launch.name, launch.source, launch.header, inputs, outputs, *modes)
    if key not in _kernels:
        if len(_kernels) >= KEPT:
            _kernels.clear()
        _kernels[key] = executors.metal_kernel(
            name=launch.name,
            input_names=inputs,
            output_names=outputs,
            source=launch.source,
            header=launch.header,
            ensure_row_contiguous=launch.ensure_row_contiguous,
            atomic_outputs=launch.atomic_outputs,
            compile_options={"math_mode": launch.math_mode},
        )
    return _kernels[key]


def _launched(launch: Launch, inputs: list[mx.array], where: str) -> dict[str, mx.array]:
    init_value = None
    if launch.init_value is not None:
        (init_value,) = struct.unpack("<f", struct.pack("<I", int(launch.init_value, 16)))
    try:
        outputs = _kernel(launch)(
            inputs=inputs,
            output_shapes=[made.shape for made in launch.outputs],
            output_dtypes=[_MLX[made.dtype] for made in launch.outputs],
            template=[(one.name, _MLX[one.value] if isinstance(one, Dtype) else one.value) for one in launch.template],
            grid=launch.grid,
            threadgroup=launch.threadgroup,
            init_value=init_value,
        )
    except Exception as error:
        raise PlanError(f"{where}: {type(error).__name__}: {error}") from error
    return {made.name: array for made, array in zip(launch.outputs, outputs, strict=True)}


def _answer(result: Result, made: _Made) -> mx.array:
    where = "result"
    return _looked_at(_output(result.launch, result.output, made, where), result, where)
