"""The target: an object of this process as a name by which another process finds it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

HOW = "name it as 'module' or 'module:object', where 'module' can be imported"


def named(implementation: object) -> str:
    """The name of a module, function holder, class or instance: `module` or `module:qualname`; a text as it is.

    An instance is named by the module-level variable that holds it. The other process imports the module anew: what
    was changed in the object since is not there. TypeError: it has no such name.
    """
    if isinstance(implementation, str):
        if not implementation.strip():
            raise TypeError(f"Expected an implementation but got an empty text: {HOW}")
        return implementation
    if implementation is None:
        raise TypeError("Expected an implementation but got None: 'mlx_assay.impl' names the built-in kernels")
    if isinstance(implementation, ModuleType):
        return _importable(implementation.__name__, implementation)
    module, qualname = _own_name(implementation) or _variable(implementation)
    return f"{_importable(module, implementation)}:{qualname}"


def _importable(module: str, implementation: object) -> str:
    if module == "__main__":
        raise TypeError(
            f"Expected an implementation that another process can import but {_shown(implementation)} stands in the "
            "program itself, __main__: move it to a module"
        )
    if module not in sys.modules:
        raise TypeError(f"Expected the module of {_shown(implementation)} to be importable but got {module!r}: {HOW}")
    return module


def _own_name(implementation: object) -> tuple[str, str] | None:
    """Where a class or function says that it stands, if it does stand there."""
    module, qualname = (getattr(implementation, name, None) for name in ("__module__", "__qualname__"))
    if not isinstance(module, str) or not isinstance(qualname, str):
        return None
    found: Any = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return (module, qualname) if found is implementation else None


def _variable(implementation: object) -> tuple[str, str]:
    """The module-level variable that holds an object: one of its class's module, else of the first that has one."""
    own = type(implementation).__module__
    for module in sorted(sys.modules, key=lambda name: (name != own, name == "__main__", name)):
        namespace = getattr(sys.modules[module], "__dict__", {})
        for name, value in list(namespace.items()):
            if value is implementation and isinstance(name, str) and name.isidentifier():
                return module, name
    raise TypeError(
        f"Expected an implementation that another process can import but {_shown(implementation)} is held by no "
        f"variable of a module: bind it to one, or {HOW}"
    )


def _shown(implementation: object) -> str:
    return (
        f"{implementation!r:.80}"
        if isinstance(implementation, type)
        else f"an instance of {type(implementation).__name__}"
    )
