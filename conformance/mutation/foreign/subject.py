"""The implementation that a campaign judges in place of somebody's module: that module, its kernels with one fault."""

from __future__ import annotations

import importlib
import os
from typing import Any

from mlx_assay.conformance.mutation.foreign import plant

TARGET = "MLX_ASSAY_PLANTED_TARGET"
"""The variable that names the module, or `module:object`."""


def _loaded(target: str) -> Any:
    name, _, path = target.partition(":")
    found: Any = importlib.import_module(name)
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    return found


if TARGET in os.environ:
    plant.activate()
    _subject = _loaded(os.environ[TARGET])


def __getattr__(name: str) -> Any:
    if name.startswith("_") or TARGET not in os.environ:
        raise AttributeError(name)
    return getattr(_subject, name)
