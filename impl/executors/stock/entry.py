"""What runs one thread of a whole kernel: its parameters out of the addresses of a launch and the thread's position."""

from collections.abc import Mapping

from mlx_assay.impl.executors.binding import ConstantValue
from mlx_assay.impl.executors.stock.function import Function, Instance, Parameter
from mlx_assay.impl.executors.translation import _POSITION

# A parameter's type may hold template parameters: what it is made from converts itself to whatever is asked for.
_CONVERSIONS = """
namespace assay {
struct Pointer {
  ulong at;
  template <class T>
  operator T*() const { return (T*)at; }
};
struct Reference {
  ulong at;
  template <class T>
  operator T&() const { return *(T*)at; }
};
}
"""


def _value(parameter: Parameter) -> str:
    name, type_ = parameter.attribute, parameter.type.replace("const", "").strip()
    lanes = int(type_[-1]) if type_[-1] in "234" else 1
    if name in _POSITION:
        return f"{type_}({_POSITION[name]})"
    if not name.endswith(("_in_grid", "_per_grid", "position_in_threadgroup", "threads_per_threadgroup")):
        return f"{type_}(p->{name})"
    return f"{type_}({', '.join(f'p->{name}[{i}]' for i in range(lanes))})"


def _argument(parameter: Parameter, number: int, constants: Mapping[str, ConstantValue]) -> str:
    if parameter.kind == "value":
        return _value(parameter)
    if parameter.kind == "threadgroup":
        return f"assay::Pointer{{(ulong)assay_arena() + b[{number}]}}"
    return f"assay::{'Reference' if parameter.type.endswith('&') else 'Pointer'}{{b[{number}]}}"


def entry(function: Function, instance: Instance, constants: Mapping[str, ConstantValue]) -> str:
    """`assay_thread`, which runs one thread. The launch gives one address a buffer, in the order of the parameters."""
    arguments, number = [], 0
    for parameter in function.parameters:
        arguments.append(_argument(parameter, number, constants))
        number += parameter.kind == "buffer"
    called = f"{function.name}<{', '.join(instance.arguments)}>" if function.template else function.name
    return (
        f'\n#line 1 "entry"\n{_CONVERSIONS}'
        '#define ASSAY_ENTRY extern "C" __attribute__((visibility("default")))\n'
        "ASSAY_ENTRY void assay_thread(const ulong* b, const assay::Position* p) {\n"
        f"{called}({', '.join(arguments)});\n}}\n"
        "ASSAY_ENTRY uint assay_threadgroup_bytes() { return assay::threadgroup_bytes; }\n"
    )
