"""The kernel object behind the door: it holds what `metal_kernel` was given and asks at each call who runs it."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx

from mlx_assay.impl.executors import arguments, choice, observation
from mlx_assay.impl.executors.counting.session import refuse
from mlx_assay.impl.executors.cuda.kernel import CudaKernel
from mlx_assay.impl.executors.host import HostKernel
from mlx_assay.impl.executors.launch import DEFAULT_POISON
from mlx_assay.impl.executors.metal import MetalKernel
from mlx_assay.impl.executors.signature import Definition
from mlx_assay.impl.executors.stage import stage
from mlx_assay.impl.executors.trace import tracing, without_derivative

MATH_MODES = ("safe", "relaxed", "fast")


class Kernel:
    """A custom kernel that runs on the current executor."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition = observation.made(definition)
        observation.defined(definition)
        self._host = HostKernel(definition)
        self._on_gpu: dict[str, MetalKernel | CudaKernel] = {}

    def __repr__(self) -> str:
        return f"<Kernel {self.definition.name!r}>"

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, Any]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[mx.array]:
        """Runs the kernel: arguments, results and errors are those of mx.fast.metal_kernel's kernel.

        On host the kernel runs during the call, its arrays are evaluated and `stream` has no meaning.
        TypeError, ValueError: arguments that MLX refuses; a gradient or tangent that is asked through the kernel.
        RuntimeError: the kernel does not compile, faults, is called inside a trace on host, or cannot be counted.
        """
        arrays = arguments.arrays(inputs)
        output_shapes, output_dtypes = arguments.shapes(output_shapes), arguments.dtypes(output_dtypes)
        grid, threadgroup = arguments.axes("grid", grid), arguments.axes("threadgroup", threadgroup)
        template, init_value = arguments.template(template), arguments.number("init_value", init_value)
        arguments.check_way(verbose, stream)
        call = observation.Call(arrays, output_shapes, output_dtypes, grid, threadgroup, template, init_value)
        if (executor := choice.current()) != "host":
            refuse(self.definition.name, f"the executor {executor!r}")
            observation.begun(self.definition, call)
            made = self._gpu(executor)(
                *(arrays, output_shapes, output_dtypes, grid, threadgroup, template, init_value, verbose),
                choice.current_poison(),
                stream,
            )
            return observation.recorded(self.definition, call, made)
        observation.called(self.definition)
        with stage("evaluation"):
            traced = tracing(*arrays)
        if traced:
            raise RuntimeError(
                f"[metal_kernel] kernel {self.definition.name!r} was called inside an mx.compile or vmap trace on the "
                "executor 'host', which cannot run there: call it outside of the transformation, or use "
                "mx.disable_compile()."
            )
        observation.begun(self.definition, call)
        poison = DEFAULT_POISON if (chosen := choice.current_poison()) is None else chosen
        launch = observation.Launch(
            run=lambda: self._host(
                *(arrays, output_shapes, output_dtypes, grid, threadgroup, template, init_value, verbose), poison
            ),
            skip=lambda: self._host.untouched(output_shapes, output_dtypes, init_value, poison),
        )
        with stage("launch"):
            outputs = observation.recorded(self.definition, call, observation.launched(self.definition, launch))
        return without_derivative(arrays, outputs)

    def _gpu(self, executor: str) -> MetalKernel | CudaKernel:
        if executor not in self._on_gpu:
            made = MetalKernel(self.definition) if executor == "metal" else CudaKernel(self.definition, self._host.text)
            self._on_gpu[executor] = made
        return self._on_gpu[executor]


def _math_mode(options: object) -> str:
    if options is None:
        return "safe"
    if not isinstance(options, dict):
        raise ValueError("[metal_kernel] Expected `compile_options` to be a dict.")
    for name in options:
        if name != "math_mode":
            raise ValueError(f"[metal_kernel] Unknown compile option `{name}`.")
    mode = str(options.get("math_mode", "safe"))
    if mode not in MATH_MODES:
        raise ValueError("[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'.")
    return mode


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: object | None = None,
) -> Kernel:
    """A custom kernel from the body of a Metal function, as mx.fast.metal_kernel: see there for the arguments.

    Which executor runs it is decided at each call. On host the math_mode decides what the plain names of functions
    mean, and nothing else: docs/language.md.
    TypeError: arguments of types that MLX refuses. ValueError: no output, or an unknown compile option.
    """
    arguments.check_texts(name=name, source=source, header=header)
    arguments.check_truths(ensure_row_contiguous=ensure_row_contiguous, atomic_outputs=atomic_outputs)
    input_names, output_names = (
        arguments.names("input_names", input_names),
        arguments.names("output_names", output_names),
    )
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    return Kernel(
        Definition(
            name,
            input_names,
            output_names,
            source,
            header,
            ensure_row_contiguous,
            atomic_outputs,
            _math_mode(compile_options),
        )
    )
