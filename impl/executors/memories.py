"""What modules imported earlier keep of a machine without Metal: functions of MLX, kernels, answers."""

from __future__ import annotations

import functools
import re
import sys
import types
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import mlx.core as mx

_KERNEL_NAME = re.compile(r"(^|_)kernels?(_|$)", re.I)
_ANSWER_NAME = re.compile(r"(^|_)(metal|gpu)(_|$)", re.I)
_CPU_NAME = re.compile(r"(^|_)cpu(_|$)", re.I)
_DEEPEST = 3
_MOST_ELEMENTS = 50
_PLAIN = (str, int, bool, float, types.ModuleType)
_ANNOTATIONS = ("__annotations__", "__annotate__", "__annotate_func__")


class RememberedNoMetal(UserWarning):
    """Modules that asked for Metal before `host_metal()` and keep the answer."""


class _Kept(NamedTuple):
    """A value that a module keeps; `path` says where, `name` is what may tell its meaning, empty where nothing does."""

    path: str
    name: str
    value: object


def remembering() -> dict[str, list[str]]:
    """Modules imported so far that keep what MLX said of Metal, and how: by name, told by where they keep it.

    Globals, attributes of classes, defaults and closures of functions, functools.partial, lists, tuples, sets and
    dictionaries are looked through. Sound for MLX's own functions and kernels; by their names for a kernel that is
    None, an answer that is False, and the CPU as the device that was given. What a cache, an instance or a local
    variable keeps is not seen.
    """
    originals, found = _originals(), {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or name.partition(".")[0] in {"mlx", "mlx_assay"}:
            continue
        if not _uses_mlx(module):
            continue
        told = (_memory(kept, originals) for kept in _values(module))
        if kept := list(dict.fromkeys(filter(None, told))):
            found[name] = kept
    return found


def _originals() -> dict[int, str]:
    return {
        id(mx.fast.metal_kernel): "mx.fast.metal_kernel",
        id(mx.metal.is_available): "mx.metal.is_available",
        id(mx.default_device): "mx.default_device",
    }


def _memory(kept: _Kept, originals: dict[int, str]) -> str | None:
    path, name, value = kept
    if id(value) in originals:
        return f"{path} is {originals[id(value)]} itself"
    if value is None and name and _KERNEL_NAME.search(name):
        return f"{path} is None"
    if value is False and name and _ANSWER_NAME.search(name):
        return f"{path} is False"
    if type(value) is mx.Device and name and value == mx.cpu and not _CPU_NAME.search(name):
        return f"{path} is {value}"
    # MLX's kernels are the only functions of nanobind without a name.
    if _of_nanobind(value) and not getattr(value, "__name__", None):
        return f"{path} is a kernel of MLX"
    return None


def _uses_mlx(module: types.ModuleType) -> bool:
    return any(value is mx or _of_nanobind(value) for value in list(vars(module).values()))


def _of_nanobind(value: object) -> bool:
    # By its type: asking a foreign value for an attribute may run foreign code.
    return type(value).__name__ == "nb_func"


def _values(module: types.ModuleType) -> Iterator[_Kept]:
    seen: set[int] = set()
    for name, value in list(vars(module).items()):
        kept = _Kept(name, name, value)
        yield kept
        yield from _inside(kept, module.__name__, seen, _DEEPEST)


def _inside(kept: _Kept, module: str, seen: set[int], depth: int) -> Iterator[_Kept]:
    """What a value keeps in turn; classes and functions of other modules are those modules' own."""
    if not depth or kept.value is None or type(kept.value) in _PLAIN or id(kept.value) in seen:
        return
    seen.add(id(kept.value))
    for part in islice(_parts(kept, module), _MOST_ELEMENTS):
        yield part
        yield from _inside(part, module, seen, depth - 1)


def _parts(kept: _Kept, module: str) -> Iterator[_Kept]:
    path, _, value = kept
    kind = type(value)
    if kind is dict:
        for key, element in list(value.items()):  # type: ignore[attr-defined]
            yield _Kept(f"{path}[{key!r}]" if type(key) is str else f"{path}[...]", "", element)
    elif kind in (list, tuple, set, frozenset):
        for element in list(value):  # type: ignore[call-overload]
            yield _Kept(f"{path}[...]", "", element)
    elif kind is functools.partial:
        yield from _of_partial(path, value)
    elif kind in (staticmethod, classmethod):
        yield _Kept(path, "", value.__func__)  # type: ignore[attr-defined]
    elif isinstance(value, types.FunctionType) and value.__module__ == module:
        yield from _of_function(path, value)
    elif issubclass(kind, type):
        yield from _of_class(path, value, module)


def _of_partial(path: str, value: Any) -> Iterator[_Kept]:
    yield _Kept(f"{path}.func", "", value.func)
    for element in value.args:
        yield _Kept(f"{path}(...)", "", element)
    for name, element in value.keywords.items():
        yield _Kept(f"{path}({name}=)", "", element)


def _of_function(path: str, function: types.FunctionType) -> Iterator[_Kept]:
    if not (function.__defaults__ or function.__kwdefaults__ or function.__closure__):
        return
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    for name, value in (*zip(names, defaults, strict=True), *(function.__kwdefaults__ or {}).items()):
        # That `gpu=False` is an answer, and no choice, cannot be told; a device is one.
        yield _Kept(f"{path}({name}=)", name if type(value) is mx.Device else "", value)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield _Kept(f"{path}, its {name}", "", cell.cell_contents)
        except ValueError:
            # Not filled yet.
            continue


def _of_class(path: str, value: Any, module: str) -> Iterator[_Kept]:
    held = type.__dict__["__dict__"].__get__(value)
    if held.get("__module__") != module:
        return
    # A field's default is a choice.
    fields = any(held.get(name) for name in _ANNOTATIONS)
    for name, attribute in list(held.items()):
        if not (name.startswith("__") and name.endswith("__")) or name == "__init__":
            yield _Kept(f"{path}.{name}", "" if fields else name, attribute)
