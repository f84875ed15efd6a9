"""The door to Apple's compiled kernels: load a library, take a function out of it, launch it on arrays."""

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from mlx_assay.impl.executors.apple.compilation import Code, Compiled, compile_kernel
from mlx_assay.impl.executors.apple.container import Container
from mlx_assay.impl.executors.apple.wheel import metallib
from mlx_assay.impl.executors.binding import ConstantValue
from mlx_assay.impl.executors.raw import LaunchError, RawKernel

__all__ = ["AppleKernel", "AppleLibrary", "LaunchError", "load"]


class AppleKernel(RawKernel):
    """One compiled kernel on this machine's CPU.

    `opaque` names the functions whose bits this machine's C library decides, not a GPU; `ordered` those whose sums are
    added in the runtime's order. What neither list names is exact arithmetic, rounded as Metal rounds.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._code = Code(compiled)
        super().__init__(
            compiled.name, compiled.arguments, compiled.constants, self._code.thread, compiled.threadgroup_bytes
        )
        self.opaque = list(compiled.opaque)
        self.ordered = list(compiled.ordered)
        self._sites = compiled.sites

    def _site(self, number: int) -> str:
        return f"{self._sites[number - 1]} (number {number})"


class AppleLibrary:
    """A library of compiled kernels. `names` lists them, `function` makes one ready to be launched."""

    def __init__(self, path: Path) -> None:
        self._container = Container(path)
        self.path = path

    def __contains__(self, name: str) -> bool:
        return name in self._container

    @property
    def names(self) -> tuple[str, ...]:
        """Every kernel's name, in the order of the file."""
        return tuple(self._container)

    def function(
        self, name: str, constants: Mapping[str, ConstantValue] | None = None, *, contraction: bool = True
    ) -> AppleKernel:
        """A kernel by name, with values for its function constants (by name, or index as text).

        `contraction`: whether a product and a sum that Apple's compiler left to be fused are rounded once, or each.
        KeyError: no such kernel. ValueError: a constant is missing or unknown. MetallibError: damaged bitcode.
        UnknownFunction: it calls what the runtime lacks, by name.
        """
        if name not in self._container:
            close = difflib.get_close_matches(name, self._container, 3)
            raise KeyError(f"{self.path.name} has no kernel {name!r}: the nearest are {', '.join(close) or 'none'}")
        return AppleKernel(compile_kernel(name, self._container[name], constants or {}, contraction))


@lru_cache(maxsize=8)
def _open(path: Path, changed: int) -> AppleLibrary:
    return AppleLibrary(path)


def load(source: str | Path) -> AppleLibrary:
    """The compiled kernels of an MLX version, such as "0.32.4" (fetched once into the cache), or of a `.metallib` file.

    FileNotFoundError, MetallibError: no such file, or not a library. WheelError: the version cannot be fetched.
    """
    path = metallib(source) if isinstance(source, str) and re.fullmatch(r"\d+\.\d[\w.]*", source) else Path(source)
    return _open(path, path.stat().st_mtime_ns)
