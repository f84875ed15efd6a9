"""The host executor's kernel object: the same text, translated, compiled for this CPU, run a fiber a thread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors import choice, fidelity, launch, objects
from mlx_assay.impl.executors.arguments import check_size
from mlx_assay.impl.executors.checker.call import call, extent
from mlx_assay.impl.executors.checker.run import Argument
from mlx_assay.impl.executors.checker.session import Session
from mlx_assay.impl.executors.checker.session import current as checking
from mlx_assay.impl.executors.counting import compilation as counted
from mlx_assay.impl.executors.counting.request import space
from mlx_assay.impl.executors.counting.run import run as counted_run
from mlx_assay.impl.executors.counting.session import current as counting
from mlx_assay.impl.executors.counting.session import refuse
from mlx_assay.impl.executors.divergence import Divergence, warn
from mlx_assay.impl.executors.explanation import explain
from mlx_assay.impl.executors.guard import Guard
from mlx_assay.impl.executors.signature import (
    MAX_CONSTANT_ELEMENTS,
    TYPES,
    Definition,
    InputKind,
    TemplateValue,
    Text,
    generate,
)
from mlx_assay.impl.executors.stage import stage
from mlx_assay.impl.executors.translation import translate

Template = Sequence[tuple[str, Any]]

_NUMPY = {
    mx.bool_: np.dtype(np.bool_),
    mx.int8: np.dtype(np.int8),
    mx.int16: np.dtype(np.int16),
    mx.int32: np.dtype(np.int32),
    mx.int64: np.dtype(np.int64),
    mx.uint8: np.dtype(np.uint8),
    mx.uint16: np.dtype(np.uint16),
    mx.uint32: np.dtype(np.uint32),
    mx.uint64: np.dtype(np.uint64),
    mx.float16: np.dtype(np.float16),
    mx.bfloat16: np.dtype(ml_dtypes.bfloat16),
    mx.float32: np.dtype(np.float32),
    mx.complex64: np.dtype(np.complex64),
}


MATH_MODES = {mode: (f"-D__METAL_MAYBE_FAST_MATH__={int(mode != 'safe')}",) for mode in ("safe", "relaxed", "fast")}
"""What the plain names of math functions mean: their precise way, or the fast one. Nothing else depends on the mode."""

_EXTRAS: dict[str, Callable[[mx.array, tuple[int, ...]], np.ndarray[Any, Any]]] = {
    "shape": lambda array, strides: np.array(array.shape, np.int32),
    "strides": lambda array, strides: np.array(strides, np.int64),
    "ndim": lambda array, strides: np.array(array.ndim, np.int32),
}


def type_name(dtype: Any) -> str:
    """Metal's name of an MLX dtype."""
    return TYPES[str(dtype).rpartition(".")[2]]


def _template_value(name: str, value: object) -> TemplateValue:
    if isinstance(value, bool):
        return TemplateValue(name, "bool", str(int(value)))
    if isinstance(value, int) and -(2**31) <= value < 2**31:
        return TemplateValue(name, "int", str(value))
    if isinstance(value, mx.Dtype):
        return TemplateValue(name, "typename", type_name(value))
    raise ValueError("[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`.")


def _evaluated(value: float, dtype: Any) -> mx.array:
    array = mx.array(value, dtype)
    mx.eval(array)
    return array


@dataclass
class _Prepared:
    text: Text
    library: objects.Library


class HostKernel:
    """A kernel on the host executor. Its inputs are read in place and never written; its outputs are new arrays."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._prepared: dict[object, _Prepared] = {}
        self._warned = False

    def _met(self, found: Divergence) -> None:
        if any(found) and not self._warned:
            self._warned = True
            warn(self.definition.name, found)

    def _prepare(self, inputs: Sequence[mx.array], dtypes: Sequence[Any], template: Template) -> _Prepared:
        kinds = tuple((a.dtype, a.ndim == 0, a.size < MAX_CONSTANT_ELEMENTS) for a in inputs)
        switches = fidelity.current()
        key = (switches.compiled, kinds, tuple(dtypes), tuple((name, type(value), value) for name, value in template))
        if (found := self._prepared.get(key)) is not None:
            return found
        text = self.text(inputs, dtypes, template)
        try:
            with stage("compile"):
                library = objects.build(translate(text), switches, MATH_MODES[self.definition.math_mode])
        except objects.CompilationError as error:
            raise self._uncompiled(text, error) from None
        self._check_memory(library.threadgroup_bytes)
        return self._prepared.setdefault(key, _Prepared(text, library))

    def _check_memory(self, bytes_: int) -> None:
        if bytes_ > launch.MAX_THREADGROUP_BYTES:
            raise RuntimeError(
                f"[metal_kernel] kernel {self.definition.name!r} declares {bytes_} bytes of "
                f"threadgroup memory, and {launch.MAX_THREADGROUP_BYTES} is the most: declare less."
            )

    def _uncompiled(self, text: Text, error: Exception) -> RuntimeError:
        return RuntimeError(
            f"[metal_kernel] kernel {self.definition.name!r} does not compile on the host executor:\n"
            f"{explain(text, str(error))}"
        )

    def text(self, inputs: Sequence[mx.array], dtypes: Sequence[Any], template: Template) -> Text:
        """The Metal text that MLX would generate for these arguments."""
        kinds = tuple(InputKind(type_name(a.dtype), a.ndim == 0, a.size < MAX_CONSTANT_ELEMENTS) for a in inputs)
        values = tuple(_template_value(name, value) for name, value in template)
        return generate(self.definition, kinds, tuple(type_name(d) for d in dtypes), values)

    def _arguments(self, inputs: Sequence[mx.array], keep: list[object]) -> list[Argument]:
        arguments: list[Argument] = []
        for name, array in zip(self.definition.input_names, inputs, strict=True):
            address, strides = launch.layout(array)
            contiguous = launch.row_contiguous(array.shape, strides)
            if self.definition.ensure_row_contiguous and not contiguous:
                array, contiguous = mx.contiguous(array), True
                mx.eval(array)
                address, strides = launch.layout(array)
            keep.append(array)
            before, size = (0, array.nbytes) if contiguous else extent(array.shape, strides, array.itemsize)
            arguments.append(Argument(name, address, before, size, array.itemsize))
            if array.ndim:
                for extra in self.definition.extras(name):
                    values = _EXTRAS[extra](array, strides)
                    keep.append(values)
                    at = launch.address(values)
                    arguments.append(Argument(f"{name}_{extra}", at, 0, values.nbytes, values.itemsize))
        return arguments

    def _output(self, shape: Sequence[int], dtype: Any, init_value: float | None, poison: int) -> mx.array:
        numpy_type = _NUMPY.get(dtype)
        if numpy_type is None:
            raise RuntimeError(
                f"[metal_kernel] kernel {self.definition.name!r} has an output of {dtype}, which Metal does not know: "
                "use float32."
            )
        if init_value is not None:
            # MLX's own conversion, which C++ leaves open beyond a dtype's range.
            value = np.frombuffer(launch.contents(_evaluated(init_value, dtype)), numpy_type)[0]
            return mx.array(np.full(shape, value, numpy_type))
        count = 1
        for n in shape:
            count *= n
        words = np.full(-(-count * numpy_type.itemsize // 4), poison, np.uint32)
        return mx.array(words.view(np.uint8)[: count * numpy_type.itemsize].view(numpy_type).reshape(shape))

    def untouched(
        self, shapes: Sequence[Sequence[int]], dtypes: Sequence[Any], init_value: float | None, poison: int
    ) -> list[mx.array]:
        """The outputs of a launch as they are before it runs."""
        return [self._output(shape, dtype, init_value, poison) for shape, dtype in zip(shapes, dtypes, strict=True)]

    def _checked(
        self,
        session: Session,
        inputs: Sequence[mx.array],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Template,
        init_value: float | None,
        poison: int,
    ) -> list[mx.array]:
        """The outputs of the checker's first run; where it could not run, what they held before."""
        mx.eval(*inputs)
        keep: list[object] = []
        arguments = self._arguments(inputs, keep)
        outputs = self.untouched(output_shapes, output_dtypes, init_value, poison)
        for name, out in zip(self.definition.output_names, outputs, strict=True):
            initial = None if init_value is None else launch.contents(out)
            arguments.append(Argument(name, 0, 0, out.nbytes, out.itemsize, True, initial))
        text = self.text(inputs, output_dtypes, template)
        try:
            found = call(session, self.definition.name, text, arguments, grid, threadgroup)
        except objects.CompilationError as error:
            raise self._uncompiled(text, error) from None
        if found is None:
            return outputs
        return [
            mx.array(np.frombuffer(bytes_, _NUMPY[out.dtype]).reshape(out.shape))
            for bytes_, out in zip(found, outputs, strict=True)
        ]

    def _count(
        self, text: Text, arguments: Sequence[Argument], how: tuple[Sequence[int], Sequence[int], int, int]
    ) -> None:
        try:
            library = counted.build(translate(text), fidelity.current(), MATH_MODES[self.definition.math_mode])
        except objects.CompilationError as error:
            raise self._uncompiled(text, error) from None
        self._check_memory(library.threadgroup_bytes)
        spaces = [space(parameter.type) for parameter in text.parameters[: len(arguments)]]
        texts = {"source": text.source, "header": text.header}
        launch.check_fault(
            self.definition.name,
            *counted_run(self.definition.name, library, texts, arguments, spaces, *how),
        )

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
        poison: int,
    ) -> list[mx.array]:
        definition = self.definition
        check_size("inputs", len(inputs), len(definition.input_names))
        check_size("output_shapes", len(output_shapes), len(definition.output_names))
        check_size("output_dtypes", len(output_dtypes), len(definition.output_names))
        if (session := checking()) is not None:
            refuse(definition.name, "the checker", "count it outside of checked()")
            return self._checked(
                *(session, inputs, output_shapes, output_dtypes, grid, threadgroup, template, init_value, poison)
            )
        launch.check_grid(grid, threadgroup)
        prepared = None if counting() is not None else self._prepare(inputs, output_dtypes, template)
        text = self.text(inputs, output_dtypes, template) if prepared is None else prepared.text
        if verbose:
            print(f"Generated source code for `{definition.name}`:\n```\n{text}\n```")
        mx.eval(*inputs)
        keep: list[object] = []
        arguments = self._arguments(inputs, keep)
        outputs = self.untouched(output_shapes, output_dtypes, init_value, poison)
        for name, out in zip(definition.output_names, outputs, strict=True):
            arguments.append(Argument(name, launch.address(out), 0, out.nbytes, out.itemsize, True))
        how = (grid, threadgroup, poison, choice.code(choice.current_schedule()))
        if prepared is None:
            self._count(text, arguments, how)
            return outputs
        if not choice.is_guarded():
            self._met(launch.launch(prepared.library, definition.name, [a.address for a in arguments], *how))
            return outputs
        with Guard() as guard:
            addresses = [guard.place(a.name, a.address, a.before, a.size, a.element, a.output) for a in arguments]
            found = launch.launch(prepared.library, definition.name, addresses, *how, guard)
            guard.finish(definition.name)
        self._met(found)
        return outputs
