"""The cuda executor's kernel object: the host's translation, compiled to PTX and run by MLX's CUDA back end."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import fidelity, launch, objects
from mlx_assay.impl.executors.cuda import compilation, device
from mlx_assay.impl.executors.explanation import explain
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.signature import Definition, Text
from mlx_assay.impl.executors.translation import translate

Template = Sequence[tuple[str, Any]]
BLOCKS = (128, 256, 512, 1024)
"""Threads of a threadgroup that a program is compiled for: the fewer, the more registers a thread may have."""

# Bound now, as everything that host_metal replaces.
_precompiled: Any = getattr(mx.fast, "precompiled_cuda_kernel", None)


class CudaKernel:
    """A kernel on an NVIDIA GPU; its launches are part of MLX's graphs, as those of mx.fast.cuda_kernel."""

    def __init__(
        self, definition: Definition, text: Callable[[Sequence[mx.array], Sequence[Any], Template], Text]
    ) -> None:
        self.definition = definition
        self._text = text
        self._prepared: dict[object, tuple[Text, compilation.Program]] = {}

    def _prepare(
        self, inputs: Sequence[mx.array], dtypes: Sequence[Any], template: Template, threads: int
    ) -> tuple[Text, compilation.Program]:
        switches = settings()
        block = next(size for size in BLOCKS if size >= threads)
        kinds = tuple((a.dtype, a.ndim == 0, a.size < 8) for a in inputs)
        key = (switches, block, kinds, tuple(dtypes), tuple((name, type(value), value) for name, value in template))
        if (found := self._prepared.get(key)) is not None:
            return found
        text = self._text(inputs, dtypes, template)
        source = translate(text, compilation.entry)
        mode = (f"-D__METAL_MAYBE_FAST_MATH__={int(self.definition.math_mode != 'safe')}",)
        try:
            program = compilation.build(source, compilation.architecture(device.capability()), block, switches, mode)
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
            if self.definition.ensure_row_contiguous:
                array = mx.contiguous(array)
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
        mx.eval(array)
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
        launch.check_grid(grid, threadgroup)
        threads = 1
        for extent, size in zip(grid, threadgroup, strict=True):
            threads *= min(extent, size)
        text, program = self._prepare(inputs, output_dtypes, template, threads)
        if verbose:
            print(f"Generated source code for `{self.definition.name}`:\n```\n{text}\n```")
        pattern = launch.DEFAULT_POISON if poison is None else poison
        if poison is not None and init_value is None:
            init_value = struct.unpack("<f", struct.pack("<I", poison))[0]
        words = program.threadgroup_bytes // 4
        made: list[mx.array] = _precompiled(
            name=compilation.ENTRY,
            compiled_source=program.ptx,
            inputs=self._buffers(inputs),
            output_shapes=[tuple(shape) for shape in output_shapes],
            output_dtypes=list(output_dtypes),
            scalars=[*(_signed(extent) for extent in grid), _signed(pattern), words],
            grid=tuple(grid),
            threadgroup=tuple(threadgroup),
            shared_memory=program.threadgroup_bytes,
            init_value=init_value,
            ensure_row_contiguous=False,
            stream=stream,
        )
        return made


def settings() -> Fidelity:
    """The switches that hold on a GPU: those of the host but for denormals, which MLX's CUDA kernels keep."""
    return fidelity.current().switched(f32_denormals="kept")


def _signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word


def _row_strides(shape: Sequence[int]) -> list[int]:
    strides = [1]
    for extent in reversed(list(shape)[1:]):
        strides.append(strides[-1] * extent)
    return strides[::-1] if len(shape) else []
