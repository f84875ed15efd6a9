"""The two doors for the same names: MLX's headers with this suite's twins, and Apple's bitcode."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mlx_assay.impl.executors.raw import RawKernel
from mlx_assay.impl.executors.stock.library import StockLibrary, TextLibrary

TWINS = Path(__file__).parents[1] / "twins"


@cache
def _twin(path: Path) -> TextLibrary:
    return TextLibrary(path.read_text())


class Texts(StockLibrary):
    """The stock headers; kernels whose text MLX does not ship come from a twin with the same name and buffers."""

    def function(self, name: str, constants: Mapping[str, Any] | None = None) -> Any:
        for path in sorted(TWINS.glob("*.metal")):
            if f'"{name}"' in path.read_text():
                return _twin(path).function(name, constants)
        return super().function(name, constants)


class Bitcode:
    """Apple's library of the installed MLX's version; a kernel is made once."""

    def __init__(self) -> None:
        from mlx_assay.impl.executors import apple

        self._library = apple.load(importlib.metadata.version("mlx"))
        self._made: dict[object, RawKernel] = {}
        self.asked: list[Any] = []
        """What was asked for, in order, until the caller forgets it."""

    def __contains__(self, name: str) -> bool:
        return name in self._library

    def function(self, name: str, constants: Mapping[str, Any] | None = None) -> RawKernel:
        key = (name, tuple(sorted((constants or {}).items())))
        if key not in self._made:
            self._made[key] = self._library.function(name, constants)
        self.asked.append(self._made[key])
        return self._made[key]
