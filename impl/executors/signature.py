"""The text of a custom kernel as MLX generates it: header, signature, body, instantiation.

The rules are those of MLX 0.32 (mlx/backend/common/metal_kernel.cpp): an input of fewer than 8 elements lies in
constant space, a 0-d one is a reference; `_shape`, `_strides`, `_ndim` arguments and Metal's attributes are there when
the body holds their names as substrings.
"""

from dataclasses import dataclass
from typing import Literal

MAX_CONSTANT_ELEMENTS = 8

ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}

TYPES = {
    "bool_": "bool",
    "bool": "bool",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "float16": "float16_t",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "float64": "double",
    "complex64": "complex64_t",
}


@dataclass(frozen=True)
class Definition:
    """What `metal_kernel` was given."""

    name: str
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    source: str
    header: str = ""
    ensure_row_contiguous: bool = True
    atomic_outputs: bool = False
    math_mode: str = "safe"

    def extras(self, name: str) -> tuple[str, ...]:
        """Which of the arguments beside an input's data its kernel takes, in their order."""
        return tuple(extra for extra in ("shape", "strides", "ndim") if f"{name}_{extra}" in self.source)


@dataclass(frozen=True)
class InputKind:
    """What of an input array reaches the signature: `type` is Metal's name of its dtype."""

    type: str
    scalar: bool
    small: bool


@dataclass(frozen=True)
class TemplateValue:
    """One template argument, as Metal text."""

    name: str
    kind: Literal["int", "bool", "typename"]
    value: str


@dataclass(frozen=True)
class Parameter:
    """One parameter: `type` without the address space's keyword order changed, e.g. `const device float*`."""

    type: str
    name: str
    attribute: bool = False


@dataclass(frozen=True)
class Text:
    """A generated kernel. `str()` is MLX's text, character by character."""

    name: str
    header: str
    signature: str
    source: str
    instantiation: str
    template_arguments: str
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"{self.header}{self.signature}{self.source}\n}}\n{self.instantiation}"


def parameters(
    definition: Definition, inputs: tuple[InputKind, ...], output_types: tuple[str, ...]
) -> tuple[Parameter, ...]:
    """The kernel's parameters in order; their number is their buffer's, up to the attributes."""
    found: list[Parameter] = []
    for name, kind in zip(definition.input_names, inputs, strict=True):
        space = "constant" if kind.small else "device"
        found.append(Parameter(f"const {space} {kind.type}{'&' if kind.scalar else '*'}", name))
        if not kind.scalar:
            types = {
                "shape": "const constant int*",
                "strides": "const constant int64_t*",
                "ndim": "const constant int&",
            }
            found += [Parameter(types[extra], f"{name}_{extra}") for extra in definition.extras(name)]
    for name, type_ in zip(definition.output_names, output_types, strict=True):
        found.append(Parameter(f"device atomic<{type_}>*" if definition.atomic_outputs else f"device {type_}*", name))
    found += [Parameter(type_, name, True) for name, type_ in ATTRIBUTES.items() if name in definition.source]
    return tuple(found)


def kernel_name(
    definition: Definition,
    inputs: tuple[InputKind, ...],
    output_types: tuple[str, ...],
    template: tuple[TemplateValue, ...],
) -> str:
    """The function's name, which tells dtypes, passing and template arguments apart."""
    parts = [f"custom_kernel_{definition.name}"]
    if template:
        parts.append("_" + "_".join(t.value.replace("-", "_") for t in template))
    parts += [kind.type + ("s" if kind.scalar else "c" if kind.small else "") for kind in inputs]
    parts += output_types
    return "_".join(parts)


def generate(
    definition: Definition,
    inputs: tuple[InputKind, ...],
    output_types: tuple[str, ...],
    template: tuple[TemplateValue, ...] = (),
) -> Text:
    """The kernel's text for these kinds of arguments."""
    name = kernel_name(definition, inputs, output_types, template)
    found = parameters(definition, inputs, output_types)
    arguments = f"<{', '.join(t.value for t in template)}>" if template else ""
    attributes = any(p.attribute for p in found)
    buffers = [p for p in found if not p.attribute]
    first_output = len(buffers) - len(definition.output_names)

    signature = f"template <{', '.join(f'{t.kind} {t.name}' for t in template)}>\n" if template else ""
    signature += f"[[kernel]] void {name}(\n"
    for index, parameter in enumerate(buffers):
        signature += f"  {parameter.type} {parameter.name} [[buffer({index})]]"
        # MLX counts the inputs' extra arguments as outputs here; its text is what it is.
        more = index < first_output or attributes or index < len(inputs) + len(output_types) - 1
        signature += ",\n" if more else ") {\n"
    signature += ",\n".join(f"  {p.type} {p.name} [[{p.name}]]" for p in found if p.attribute)
    signature += ") {\n" if attributes else ""

    instantiation = ""
    if template:
        function = f"{name}{arguments}"
        instantiation = f'\ntemplate [[host_name("{name}")]] [[kernel]] decltype({function}) {function};\n'
    return Text(name, definition.header, signature, definition.source, instantiation, arguments, found)
