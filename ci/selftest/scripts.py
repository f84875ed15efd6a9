"""The project's scripts in ci/, loaded as modules: they stand in no package."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

CI = Path(__file__).parents[1]


@cache
def script(name: str) -> ModuleType:
    """ci/NAME.py, loaded once a process."""
    spec = importlib.util.spec_from_file_location(name, CI / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
