"""Imports one module of an installed package without running the package's own __init__.

mlx_lm and xgrammar import transformers and more in theirs, which takes seconds that one function does not need.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType


def load_submodule(package: str, path: str) -> ModuleType:
    """The module `package.path`, executed as usual, with a bare parent package where the real one is not loaded.

    The bare parent is taken away again, so that a later `import package` still runs its __init__. Raises ImportError
    where the package or the module is absent.
    """
    if package in sys.modules:
        return importlib.import_module(f"{package}.{path}")
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    bare = ModuleType(package)
    bare.__path__ = list(found.submodule_search_locations)
    sys.modules[package] = bare
    try:
        return importlib.import_module(f"{package}.{path}")
    finally:
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
