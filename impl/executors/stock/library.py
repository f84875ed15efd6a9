"""A library of whole kernels in Metal text: each made for this CPU when it is asked for by its host name."""

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import count

from mlx_assay.impl.executors import fidelity, objects
from mlx_assay.impl.executors.binding import Argument, ConstantValue
from mlx_assay.impl.executors.checker.compilation import CheckedLibrary, build
from mlx_assay.impl.executors.counting import compilation as counted
from mlx_assay.impl.executors.headers import INCLUDED, expand, line
from mlx_assay.impl.executors.raw import RawKernel
from mlx_assay.impl.executors.rewriting import function_constants, rewrite
from mlx_assay.impl.executors.stock import function as metal
from mlx_assay.impl.executors.stock import naming
from mlx_assay.impl.executors.stock.entry import entry
from mlx_assay.impl.executors.stock.function import split
from mlx_assay.impl.executors.stock.preprocessing import preprocess
from mlx_assay.impl.executors.translation import known, prelude

# Bytes of the element types that a buffer's size and alignment are checked by; others are the caller's matter.
_BYTES = {
    **dict.fromkeys(("bool", "char", "uchar", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("short", "ushort", "half", "bfloat", "int16_t", "uint16_t", "float16_t", "bfloat16_t"), 2),
    **dict.fromkeys(("int", "uint", "float", "int32_t", "uint32_t"), 4),
    **dict.fromkeys(("long", "ulong", "int64_t", "uint64_t", "size_t", "complex64_t"), 8),
}
_NAMES = {"float16_t": "half", "bfloat16_t": "bfloat", "size_t": "ulong"}


# Many instantiations may stand in a text, and one is wanted.
_UNINSTANTIATED = '#undef instantiate_kernel\n#define instantiate_kernel(...)\n#line 1 "library"\n'


class TextKernel(RawKernel):
    """A kernel compiled from Metal text. `source` is its translation."""

    def __init__(
        self, name: str, arguments: Sequence[Argument], constants: Mapping[str, ConstantValue], source: str
    ) -> None:
        self.source = source
        self._libraries: dict[tuple[str, ...], objects.Library] = {}
        super().__init__(name, arguments, constants, self._built().threadgroup_bytes)

    def _built(self) -> objects.Library:
        """The code for the fidelity switches as they stand, made when first asked for."""
        switches = fidelity.current()
        if (library := self._libraries.get(switches.compiled)) is None:
            library = self._libraries.setdefault(switches.compiled, objects.build(self.source, switches))
        return library

    def _thread(self) -> int:
        return self._built().thread

    def _countable(self) -> counted.CountedLibrary:
        return counted.build(self.source, fidelity.current())

    def _checkable(self) -> tuple[CheckedLibrary, dict[str, str]]:
        return build(self.source), {}


class TextLibrary:
    """Kernels of one Metal text, such as a `.metal` file: `names` lists its host names, `function` makes one."""

    def __init__(self, text: str) -> None:
        """`mlx/...` headers are those of the installed MLX; its utils.h stands before the text."""
        expanded, self._instances = metal.instances(preprocess(INCLUDED + text))
        self._functions = metal.functions(expanded)
        self._constants = {c.name: c for c in metal.constants(expanded)}
        self._text = _UNINSTANTIATED + metal.instances(text)[0]
        self._made: dict[object, TextKernel] = {}
        for name, found in self._functions.items():
            if not found[0].template:
                self._instances.setdefault(name, metal.Instance(name, ()))

    def __contains__(self, name: str) -> bool:
        return name in self._instances

    @property
    def names(self) -> tuple[str, ...]:
        """Every kernel's host name, in the order of the text."""
        return tuple(self._instances)

    def function(self, name: str, constants: Mapping[str, ConstantValue] | None = None) -> TextKernel:
        """A kernel by host name, with values for its function constants (by name, or index as text).

        Each launch runs what is compiled for the fidelity switches as they stand.
        KeyError: no such kernel. ValueError: a constant is unknown, or has no value and is used.
        CompilationError: the compiler's messages, with the lines of the header.
        """
        if name not in self._instances:
            close = difflib.get_close_matches(name, self._instances, 3)
            near = f"the nearest are {', '.join(close)}" if close else f"expected one of {listed(self._instances)}"
            raise KeyError(f"no kernel {name!r} in this text: {near}")
        instance = self._instances[name]
        return self.made(name, instance.function, instance.arguments, constants or {})

    def made(
        self, name: str, function: str, arguments: tuple[str, ...], constants: Mapping[str, ConstantValue]
    ) -> TextKernel:
        """An instantiation of a function, which the text need not hold, under a name of the caller's."""
        if function not in self._functions:
            raise KeyError(f"no kernel {function!r} in this text: expected one of {', '.join(self._functions)}")
        key = (name, function, arguments, tuple(sorted(constants.items())))
        if (found := self._made.get(key)) is None:
            found = self._made[key] = self._make(name, metal.Instance(function, arguments), constants)
        return found

    def _make(self, name: str, instance: metal.Instance, constants: Mapping[str, ConstantValue]) -> TextKernel:
        function = metal.chosen(self._functions[instance.function], instance.arguments)
        values = self._values(name, constants)
        numbers = count()
        given = function_constants({self._constants[n].index: v for n, v in values.items()})
        text = expand(rewrite(self._text, numbers, True), numbers, set(known()), "library")
        source = "".join((prelude(), given, line("library"), text, entry(function, instance, values)))
        try:
            return TextKernel(name, _arguments(function, instance), values, source)
        except objects.CompilationError as error:
            if missing := re.findall(r"function constant \d+ \((\w+)\) has no value", str(error)):
                listed = ", ".join(dict.fromkeys(missing))
                raise ValueError(f"kernel {name!r} needs a value for its function constants {listed}") from None
            raise

    def _values(self, name: str, given: Mapping[str, ConstantValue]) -> dict[str, ConstantValue]:
        by_name = self._constants | {str(c.index): c for c in self._constants.values()}
        if unknown := [n for n in given if n not in by_name]:
            listed = ", ".join(f"{c.name} ({c.type}, index {c.index})" for c in self._constants.values())
            raise ValueError(f"kernel {name!r} has no function constant {unknown[0]!r}: expected {listed or 'none'}")
        return {by_name[n].name: v for n, v in given.items()}


class StockLibrary:
    """MLX's stock kernels out of the headers of the installed MLX, by the names that MLX's own dispatch uses."""

    def __contains__(self, name: str) -> bool:
        return naming.define(name) is not None

    def function(self, name: str, constants: Mapping[str, ConstantValue] | None = None) -> TextKernel:
        """A kernel by MLX's name, with values for its function constants.

        KeyError: no header has a kernel of that form. Else as TextLibrary.function.
        """
        definition = naming.define(name)
        if definition is None:
            raise KeyError(f"no header that MLX ships has a kernel of the form {name!r}: see docs/fidelity.md")
        return _read(definition.headers).made(name, definition.function, split(definition.arguments), constants or {})

    def instantiate(
        self,
        header: str | Sequence[str],
        function: str,
        *arguments: str,
        constants: Mapping[str, ConstantValue] | None = None,
    ) -> TextKernel:
        """A kernel by its header (below mlx/backend/metal/kernels), function and template arguments, as Metal text.

        KeyError: the header has no such function. Else as TextLibrary.function.
        """
        headers = (header,) if isinstance(header, str) else tuple(header)
        return _read(headers).made(f"{function}<{', '.join(arguments)}>", function, arguments, constants or {})


@lru_cache(maxsize=64)
def _read(headers: tuple[str, ...]) -> TextLibrary:
    lines = (f'#include "mlx/backend/metal/kernels/{header}"' for header in ("utils.h", *headers))
    return TextLibrary("\n".join(lines) + "\n")


def listed(names: Collection[str], most: int = 10) -> str:
    """Names for a message, the first of many."""
    shown = ", ".join(list(names)[:most]) or "none, for it holds no kernel"
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def _bound(function: metal.Function, instance: metal.Instance) -> dict[str, str]:
    """Template parameter -> what it stands for."""
    bound: dict[str, str] = {}
    for i, parameter in enumerate(function.template):
        value = instance.arguments[i] if i < len(instance.arguments) else parameter.default
        bound[parameter.name] = bound.get(value, value)
    return bound


def _arguments(function: metal.Function, instance: metal.Instance) -> list[Argument]:
    bound, out = _bound(function, instance), []
    for p in function.parameters:
        if p.kind != "buffer":
            out.append(Argument(p.attribute or p.kind, p.type, p.name, p.location, condition=p.condition))
            continue
        element = bound.get(p.element, p.element)
        size = _BYTES.get(element, 0)
        out.append(
            Argument(
                kind="buffer",
                type=p.type,
                name=p.name,
                location=p.location,
                writable=p.writable,
                bytes=size if p.type.endswith("&") else 0,
                # As in MLX's own buffers on a CPU, no more than what the element itself needs.
                alignment=min(size, 8) or 1,
                type_name=_NAMES.get(element, element),
                condition=p.condition,
            )
        )
    return out
