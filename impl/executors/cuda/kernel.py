"""The cuda executor's kernel object: the host's translation, compiled to PTX and run by MLX's CUDA back end."""

import math
import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import choice, fidelity, launch, objects
from mlx_assay.impl.executors.arguments import check_size
from mlx_assay.impl.executors.cuda import compilation, device, fault
from mlx_assay.impl.executors.explanation import explain
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.host import MATH_MODES
from mlx_assay.impl.executors.signature import Definition, Text
from mlx_assay.impl.executors.trace import tracing
from mlx_assay.impl.executors.translation import translate

Template = Sequence[tuple[str, Any]]
BLOCKS = (128, 256, 512, 1024)
"""Threads of a threadgroup that a program is compiled for: the fewer, the more registers a thread may have."""
MAX_GROUPS = 65535
"""The most threadgroups that a launch has along y or z."""

# Bound now, as everything that host_metal replaces.
_precompiled: Any = getattr(mx.fast, "precompiled_cuda_kernel", None)
_default_device = mx.default_device


class CudaKernel:
    """A kernel on an NVIDIA GPU; its launches are part of MLX's graphs, as those of mx.fast.cuda_kernel."""

    def __init__(
        self, definition: Definition, text: Callable[[Sequence[mx.array], Sequence[Any], Template], Text]
    ) -> None:
        self.definition = definition
        self._text = text
        self._prepared: dict[object, tuple[Text, compilation.Program]] = {}

    def _prepare(
        self, inputs: Sequence[mx.array], dtypes: Sequence[Any], template: Template, threads: int, whole: bool
    ) -> tuple[Text, compilation.Program]:
        switches = settings()
        block = next(size for size in BLOCKS if size >= threads)
        kinds = tuple((a.dtype, a.ndim == 0, a.size < 8) for a in inputs)
        key = (
            switches,
            block,
            whole,
            kinds,
            tuple(dtypes),
            tuple((name, type(value), value) for name, value in template),
        )
        if (found := self._prepared.get(key)) is not None:
            return found
        text = self._text(inputs, dtypes, template)
        source = translate(text, compilation.entry)
        defines = (*MATH_MODES[self.definition.math_mode], *((compilation.WHOLE,) if whole else ()))
        try:
            program = compilation.build(
                text.name, source, compilation.architecture(device.capability()), block, switches, defines
            )
        except objects.CompilationError as error:
            raise RuntimeError(
                f"[metal_kernel] kernel {self.definition.name!r} does not compile on the cuda executor:\n"
                f"{explain(text, str(error))}"
            ) from None
        if program.threadgroup_bytes > launch.MAX_THREADGROUP_BYTES:
            raise RuntimeError(
                f"[metal_kernel] kernel {self.definition.name!r} declares {program.threadgroup_bytes} bytes of "
                f"threadgroup memory, and {launch.MAX_THREADGROUP_BYTES} is the most: declare less."
            )
        return self._prepared.setdefault(key, (text, program))

    def _buffers(self, inputs: Sequence[mx.array]) -> list[mx.array]:
        """The inputs with what their kernel is told of them, as buffers."""
        buffers: list[mx.array] = []
        for name, array in zip(self.definition.input_names, inputs, strict=True):
            extras = self.definition.extras(name) if array.ndim else ()
            buffers.append(array)
            for extra in extras:
                buffers.append(self._told(extra, array))
        return buffers

    def _told(self, extra: str, array: mx.array) -> mx.array:
        if extra == "shape":
            return mx.array(list(array.shape), mx.int32)
        if extra == "ndim":
            return mx.array(array.ndim, mx.int32)
        if self.definition.ensure_row_contiguous:
            return mx.array(_row_strides(array.shape), mx.int64)
        if tracing(array):
            raise RuntimeError(
                f"[metal_kernel] kernel {self.definition.name!r} asks for an array's strides inside an mx.compile or "
                "vmap trace, where the executor 'cuda' does not know them: call it outside, or make it with "
                "ensure_row_contiguous=True."
            )
        return mx.array(list(launch.layout(array)[1]), mx.int64)

    def __call__(
        self,
        inputs: Sequence[mx.array],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Template,
        init_value: float | None,
        verbose: bool,
        poison: int | None,
        stream: object = None,
    ) -> list[mx.array]:
        definition = self.definition
        check_size("inputs", len(inputs), len(definition.input_names))
        check_size("output_shapes", len(output_shapes), len(definition.output_names))
        check_size("output_dtypes", len(output_dtypes), len(definition.output_names))
        _check_stream(stream)
        grid, threadgroup = launch.check_grid(grid, threadgroup)
        pattern = launch.DEFAULT_POISON if poison is None else poison
        if not all(grid):
            return [
                _before(s, dtype, init_value, pattern) for s, dtype in zip(output_shapes, output_dtypes, strict=True)
            ]
        threads = threadgroup[0] * threadgroup[1] * threadgroup[2]
        launched = _flattened(definition.name, grid, threadgroup)
        whole = launched == tuple(grid) and not any(map(operator.mod, grid, map(min, grid, threadgroup)))
        text, program = self._prepare(inputs, output_dtypes, template, threads, whole)
        if verbose:
            print(f"Generated source code for `{definition.name}`:\n```\n{text}\n```")
        poisoned = poison is not None and init_value is None
        shapes = [tuple(shape) for shape in output_shapes]
        made: list[mx.array] = _precompiled(
            name=program.entry,
            compiled_source=program.ptx,
            inputs=self._buffers(inputs),
            output_shapes=list(map(_words, shapes, output_dtypes)) if poisoned else shapes,
            output_dtypes=[mx.float32] * len(shapes) if poisoned else list(output_dtypes),
            scalars=[*(_signed(extent) for extent in grid), _signed(pattern), program.threadgroup_bytes // 4],
            grid=launched,
            threadgroup=tuple(threadgroup),
            shared_memory=program.threadgroup_bytes,
            init_value=_as_float(pattern) if poisoned else init_value,
            ensure_row_contiguous=definition.ensure_row_contiguous,
            stream=stream,
        )
        if poisoned:
            made = list(map(_of_words, made, shapes, output_dtypes))
        if choice.is_guarded():
            self._finish(made)
        return made

    def _finish(self, made: list[mx.array]) -> None:
        """Waits for a launch, so that what it does wrong is told with its name."""
        try:
            if tracing(*made):
                device.launched(self.definition.name)
        except RuntimeError as error:
            device.lose()
            raise RuntimeError(fault.told([self.definition.name], str(error))) from None


def settings() -> Fidelity:
    """The switches that hold on a GPU: those of the host, but that denormals are kept unless `switched` names them.

    MLX's own CUDA kernels keep them.
    """
    held = fidelity.current()
    return held if "f32_denormals" in fidelity.asked() else held.switched(f32_denormals="kept")


def _check_stream(stream: Any) -> None:
    device = _default_device() if stream is None else getattr(stream, "device", stream)
    if device != mx.gpu:
        raise ValueError("[metal_kernel] Only supports the GPU.")


def _flattened(name: str, grid: Sequence[int], threadgroup: Sequence[int]) -> tuple[int, ...]:
    """The grid as CUDA takes it: in one row of threadgroups where there are too many along y or z.

    ValueError: there are too many for a row.
    """
    groups = [-(-extent // size) for extent, size in zip(grid, threadgroup, strict=True)]
    if max(groups[1:]) <= MAX_GROUPS:
        return tuple(grid)
    row = groups[0] * groups[1] * groups[2]
    if row * threadgroup[0] >= 2**31:
        raise ValueError(
            f"[metal_kernel] kernel {name!r}: the cuda executor launches at most {2**31 - 1} threads in a row, and a "
            f"grid of {tuple(grid)} in threadgroups of {tuple(threadgroup)} needs more: make the threadgroups larger "
            "along y or z."
        )
    return (row * threadgroup[0], threadgroup[1], threadgroup[2])


def _words(shape: Sequence[int], dtype: Any) -> tuple[int]:
    """The shape of as many words as an output takes."""
    return (-(-math.prod(shape) * dtype.size // 4),)


def _of_words(words: mx.array, shape: Sequence[int], dtype: Any) -> mx.array:
    """An output out of its words."""
    return words.view(mx.uint8)[: math.prod(shape) * dtype.size].view(dtype).reshape(shape)


def _before(shape: Sequence[int], dtype: Any, init_value: float | None, pattern: int) -> mx.array:
    """An output as it is before a launch."""
    if init_value is not None:
        return mx.full(shape, init_value, dtype)
    return _of_words(mx.full(_words(shape, dtype), pattern, mx.uint32), shape, dtype)


def _as_float(pattern: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", pattern))[0]
    return value


def _signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word


def _row_strides(shape: Sequence[int]) -> list[int]:
    strides = [1]
    for extent in reversed(list(shape)[1:]):
        strides.append(strides[-1] * extent)
    return strides[::-1] if len(shape) else []
