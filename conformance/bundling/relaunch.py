"""Launches of a bundle run again on the host executor, in a process of its own that is nothing but this.

A kernel's text is code. It may include headers of Metal and MLX alone, its arrays lie between pages that nobody may
touch, and what the process writes is read as if an enemy had written it.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from numpy.lib.stride_tricks import as_strided

from mlx_assay.conformance.adapters.inclusion import refused
from mlx_assay.conformance.adapters.launches import Dtype
from mlx_assay.conformance.bundling.launches import NUMPY, Buffer, Kernel, Launch, Launches, decode
from mlx_assay.conformance.bundling.pool import Pool
from mlx_assay.fixtures import codec
from mlx_assay.impl import executors
from mlx_assay.impl.executors import choice, fidelity

MOST_WRITTEN = 1 << 30
"""Bytes of a file, one that the compiler writes included."""


class Refused(Exception):
    """A launch that is not run."""


def main() -> int:
    """Reads launches from one file and writes their outputs to another, as the JSON on the command line says."""
    asked = json.loads(sys.argv[1])
    sys.path[:] = [folder for folder in sys.path if folder]
    _limit(int(asked["memory"]))
    warnings.simplefilter("ignore")
    launches, pool = decode(Path(asked["launches"]).read_bytes())
    fidelity.prefer(fidelity.Fidelity().switched(**asked["switches"]))
    made: dict[str, np.ndarray] = {}
    try:
        with (
            executors.use("host"),
            choice.guarded(),
            executors.poison(int(asked["poison"], 16)),
            choice.schedule(asked["schedule"]),
        ):
            for index, launch in enumerate(launches.launches):
                _run(index, launch, launches, pool, made)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 1
    finally:
        data = codec.encode({name: array.reshape(-1).view(np.uint8) for name, array in made.items()}, {})
        Path(asked["outputs"]).write_bytes(data)
    return 0


def _limit(memory: int) -> None:
    """No core files, no large files, and on Linux no more private memory than was said."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN, MOST_WRITTEN))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _run(index: int, launch: Launch, launches: Launches, pool: Pool, made: dict[str, np.ndarray]) -> None:
    kernel = launches.kernels[launch.kernel]
    outputs = _kernel(kernel)(
        inputs=[_input(buffer, pool, made) for buffer in launch.inputs],
        output_shapes=[buffer.shape for buffer in launch.outputs],
        output_dtypes=[_mlx(buffer.dtype) for buffer in launch.outputs],
        grid=launch.grid,
        threadgroup=launch.threadgroup,
        template=[(one.name, _mlx(one.value) if isinstance(one, Dtype) else one.value) for one in launch.template],
        init_value=None if launch.init_value is None else float.fromhex(launch.init_value),
    )
    for place, (buffer, array) in enumerate(zip(launch.outputs, outputs, strict=True)):
        made[name(index, place)] = _bytes(array, buffer.dtype)


def name(launch: int, output: int) -> str:
    """Under which the output of a launch is kept."""
    return f"{launch}/out-{output}"


def _kernel(kernel: Kernel) -> executors.Kernel:
    for part, text in (("header", kernel.header), ("source", kernel.source)):
        if (found := refused(text)) is not None:
            raise Refused(f"the {part} of {kernel.name} has {found!r}, which makes a compiler look at files")
    return executors.metal_kernel(
        name=kernel.name,
        input_names=kernel.input_names,
        output_names=kernel.output_names,
        source=kernel.source,
        header=kernel.header,
        ensure_row_contiguous=kernel.ensure_row_contiguous,
        atomic_outputs=kernel.atomic_outputs,
        compile_options={"math_mode": kernel.math_mode},
    )


def _mlx(dtype: str) -> mx.Dtype:
    found: mx.Dtype = getattr(mx, "bool_" if dtype == "bool" else dtype)
    return found


def _bytes(array: Any, dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array(array)
    return np.array(array.view(_mlx(f"uint{8 * array.dtype.size}")))


def _input(buffer: Buffer, pool: Pool, made: dict[str, np.ndarray]) -> mx.array:
    """What was made here, where an earlier launch made it; else what the bundle holds."""
    dtype = NUMPY[buffer.dtype]
    own = None if buffer.made_by is None else made[name(*buffer.made_by)]
    data = pool.array(buffer.tensor, dtype, buffer.shape) if own is None else own
    data = data.reshape(-1).view(np.uint8).view(dtype).reshape(buffer.shape)
    if buffer.strides is not None:
        return _strided(data, buffer)
    return _array(data, buffer.dtype)


def _array(data: np.ndarray, dtype: str) -> mx.array:
    if dtype == "bool":
        return mx.array(data)
    return mx.array(data.view(f"u{data.dtype.itemsize}")).view(_mlx(dtype))


def _strided(data: np.ndarray, buffer: Buffer) -> mx.array:
    """The same values where the kernel saw them: apart, overlapping or backwards."""
    strides = buffer.strides or []
    reach = [(extent - 1) * stride for extent, stride in zip(buffer.shape, strides, strict=True)]
    if not data.size:
        return _array(data, buffer.dtype)
    before, size = -sum(step for step in reach if step < 0), sum(map(abs, reach)) + 1
    if size > 1 << 28:
        raise Refused(f"an input that spans {size} elements")
    base = np.zeros(size, data.dtype)
    steps = [stride * data.dtype.itemsize for stride in strides]
    as_strided(base[before:], data.shape, steps)[...] = data
    return mx.as_strided(_array(base, buffer.dtype), data.shape, strides, before)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
