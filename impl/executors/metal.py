"""The metal executor's kernel object: mx.fast.metal_kernel itself."""

import struct
from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors.signature import Definition

# Bound now: inside `host_metal` MLX's own name makes kernels for the host.
_metal_kernel = mx.fast.metal_kernel


class MetalKernel:
    """A kernel on Metal."""

    def __init__(self, definition: Definition) -> None:
        options = {} if definition.math_mode == "safe" else {"compile_options": {"math_mode": definition.math_mode}}
        self._kernel: Any = _metal_kernel(
            name=definition.name,
            input_names=list(definition.input_names),
            output_names=list(definition.output_names),
            source=definition.source,
            header=definition.header,
            ensure_row_contiguous=definition.ensure_row_contiguous,
            atomic_outputs=definition.atomic_outputs,
            **options,
        )

    def __call__(
        self,
        inputs: Sequence[mx.array],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, Any]],
        init_value: float | None,
        verbose: bool,
        poison: int | None,
        stream: object = None,
    ) -> list[mx.array]:
        if poison is not None and init_value is None:
            init_value = struct.unpack("<f", struct.pack("<I", poison))[0]
        made: list[mx.array] = self._kernel(
            inputs=list(inputs),
            output_shapes=output_shapes,
            output_dtypes=output_dtypes,
            grid=tuple(grid),
            threadgroup=tuple(threadgroup),
            template=list(template) or None,
            init_value=init_value,
            verbose=verbose,
            stream=stream,
        )
        return made
