"""The recorder: in the process of what is judged, it writes down the launches of every call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import msgspec
import numpy as np

from mlx_assay.conformance.adapters.launches import Bool, Dtype, Int
from mlx_assay.conformance.bundling.launches import (
    LARGEST,
    MOST_LAUNCHES,
    NUMPY,
    Buffer,
    Kernel,
    Launch,
    Launches,
    encode,
)
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.impl import executors
from mlx_assay.impl.executors import launch as memory
from mlx_assay.impl.executors.observation import Call, recording
from mlx_assay.impl.executors.signature import Definition

SUFFIX = ".safetensors"
EARLY = 8 << 20
"""Bytes of arrays up to which the file is written before each launch too."""

_unsigned = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


class Unrecorded(Exception):
    """A launch that a file cannot tell of."""


def recorded(functions: dict[str, Callable[..., Any]], folder: str) -> dict[str, Callable[..., Any]]:
    """The functions, each call of which leaves a file in the folder, by the number of the call."""
    if executors.current() == "metal":
        # A user's own kernels are MLX's there, and nobody would hear of them.
        core: Any = mx
        core.fast.metal_kernel = executors.metal_kernel
    counter = _Counter()
    return {name: _recorded(function, Path(folder), counter) for name, function in functions.items()}


class _Counter:
    def __init__(self) -> None:
        self.calls = 0


def _recorded(function: Callable[..., Any], folder: Path, counter: _Counter) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        log = Log(folder / f"{counter.calls}{SUFFIX}")
        counter.calls += 1
        try:
            with recording(log.hear):
                result = function(*arguments)
                if type(result) is mx.array:
                    mx.eval(result)
        finally:
            log.write()
        return result

    return call


class Log:
    """The launches of one call, as they come, and the file that tells of them."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._heard: list[tuple[Definition, Call, list[Any] | None]] = []
        self._omitted = ""

    def hear(self, definition: Definition, call: Call, outputs: list[Any] | None) -> None:
        """Notes a launch that is to come, or what it gave; arrays are read later, since Metal has not run it yet."""
        if outputs is not None:
            self._heard = [(known, of, outputs if of is call else gave) for known, of, gave in self._heard]
            return
        size = sum(array.nbytes for _, known, gave in self._heard for array in (*known.inputs, *(gave or ())))
        if len(self._heard) == MOST_LAUNCHES:
            self._omitted = f"more than {MOST_LAUNCHES} launches"
        elif size > LARGEST:
            self._omitted = f"arrays of more than {LARGEST} bytes"
        else:
            self._heard.append((definition, call, None))
        if size <= EARLY:
            # A launch may end the process.
            self.write()

    def write(self) -> None:
        """Puts the file in its place."""
        if self._path is not None:
            self._path.write_bytes(self.encoded())

    def encoded(self) -> bytes:
        """The file that tells of them; of none where one cannot be told of."""
        pool = Pool()
        made: Made = {}
        try:
            if self._omitted:
                raise Unrecorded(self._omitted)
            kernels = list(dict.fromkeys(definition for definition, _, _ in self._heard))
            launches = Launches(
                kernels=[_kernel(definition) for definition in kernels],
                launches=[
                    _launch(index, kernels.index(definition), call, outputs, pool, made)
                    for index, (definition, call, outputs) in enumerate(self._heard)
                ],
            )
            if pool.nbytes > LARGEST:
                raise Unrecorded(f"arrays of more than {LARGEST} bytes")
            # What is too long or oddly named for a reader is left out here.
            msgspec.json.decode(msgspec.json.encode(launches), type=Launches)
            return encode(launches, pool)
        except (Unrecorded, ValueError, RuntimeError) as error:
            return encode(Launches(omitted=f"{error}"[:1000]), Pool())


def _kernel(definition: Definition) -> Kernel:
    return Kernel(
        name=definition.name,
        input_names=list(definition.input_names),
        output_names=list(definition.output_names),
        source=definition.source,
        header=definition.header,
        ensure_row_contiguous=definition.ensure_row_contiguous,
        atomic_outputs=definition.atomic_outputs,
        math_mode=definition.math_mode,  # type: ignore[arg-type]
    )


Made = dict[tuple[int, int], tuple[int, int]]
"""From address and size of what a launch made to the launch and the place among its outputs."""


def _launch(index: int, kernel: int, call: Call, outputs: list[Any] | None, pool: Pool, made: Made) -> Launch:
    x, y, z = call.grid
    u, v, w = call.threadgroup
    inputs = [_buffer(f"{index}/in-{place}", array, pool, made) for place, array in enumerate(call.inputs)]
    given = [_buffer(f"{index}/out-{place}", array, pool, {}) for place, array in enumerate(outputs or ())]
    if executors.current() != "cuda":
        # There an array's place on the host is not where the kernel had it.
        made |= {_memory(array): (index, place) for place, array in enumerate(outputs or ()) if array.size}
    if outputs is None:
        given = [
            Buffer(tensor="", dtype=_name(dtype), shape=list(shape))  # type: ignore[arg-type]
            for shape, dtype in zip(call.output_shapes, call.output_dtypes, strict=True)
        ]
    return Launch(
        kernel=kernel,
        inputs=inputs,
        outputs=given,
        grid=(x, y, z),
        threadgroup=(u, v, w),
        template=[_template(name, value) for name, value in call.template],
        init_value=None if call.init_value is None else call.init_value.hex(),
    )


def _template(name: str, value: Any) -> Dtype | Int | Bool:
    if isinstance(value, bool):
        return Bool(name=name, value=value)
    return Int(name=name, value=value) if isinstance(value, int) else Dtype(name=name, value=_name(value))  # type: ignore[arg-type]


def _name(dtype: mx.Dtype) -> str:
    name = str(dtype).removeprefix("mlx.core.")
    name = "bool" if name == "bool_" else name
    if name not in NUMPY:
        raise Unrecorded(f"an array of {name}")
    return name


def _memory(array: mx.array) -> tuple[int, int]:
    """The address and the bytes of an evaluated array, which the log keeps alive."""
    return memory.layout(array)[0], array.nbytes


def _buffer(name: str, array: mx.array, pool: Pool, made: Made) -> Buffer:
    dtype = _name(array.dtype)
    mx.eval(array)
    bits = np.array(array) if dtype == "bool" else np.array(array.view(_unsigned[array.dtype.size]))
    strides = _strides(array)
    return Buffer(
        tensor=pool.add(name, bits.view(NUMPY[dtype])),
        dtype=dtype,  # type: ignore[arg-type]
        shape=list(array.shape),
        strides=strides,
        # Of a transposed output the order of elements would be lost.
        made_by=made.get(_memory(array)) if made and strides is None else None,
    )


def _strides(array: mx.array) -> list[int] | None:
    """How the array lies, where that is not row by row and can be told."""
    if executors.current() != "host":
        return None
    _, strides = memory.layout(array)
    return None if memory.row_contiguous(array.shape, strides) else list(strides)
