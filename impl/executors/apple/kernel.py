"""The door to Apple's compiled kernels: load a library, take a function out of it, launch it on arrays."""

import difflib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path

from mlx_assay.impl.executors import fidelity
from mlx_assay.impl.executors.apple.compilation import Code, Compiled, compile_kernel
from mlx_assay.impl.executors.apple.container import Container
from mlx_assay.impl.executors.apple.wheel import metallib
from mlx_assay.impl.executors.binding import ConstantValue
from mlx_assay.impl.executors.checker.compilation import CheckedLibrary, Meaning, ThreadgroupArray
from mlx_assay.impl.executors.fidelity import Fidelity
from mlx_assay.impl.executors.raw import LaunchError, RawKernel

KEPT = 256
"""Kernels that a library holds ready: those that were asked for last."""

__all__ = ["AppleKernel", "AppleLibrary", "LaunchError", "load"]


class AppleKernel(RawKernel):
    """One compiled kernel on this machine's CPU.

    `opaque` names the functions whose bits this machine's C library decides, not a GPU; `ordered` those whose sums are
    added in the order that the switch simd_sum sets. What neither list names is exact arithmetic, rounded as Metal
    rounds.
    """

    def __init__(self, make: Callable[..., Compiled], contraction: bool | None = None) -> None:
        self._make = make
        self._checked_codes: dict[tuple[str, ...], tuple[Compiled, Code]] = {}
        self._pinned: dict[str, str] = {} if contraction is None else {"contraction": "on" if contraction else "off"}
        switches = self._switches()
        compiled = make(switches)
        self._codes = {switches.compiled: Code(compiled)}
        super().__init__(compiled.name, compiled.arguments, compiled.constants, compiled.threadgroup_bytes)
        self.opaque = list(compiled.opaque)
        self.ordered = list(compiled.ordered)
        self._sites = compiled.sites

    def _site(self, number: int) -> str:
        return f"{self._sites[number - 1]} (number {number})"

    def _checkable(self) -> tuple[CheckedLibrary, dict[str, str]]:
        switches = self._switches()
        if (made := self._checked_codes.get(switches.compiled)) is None:
            compiled = self._make(switches, True)
            made = self._checked_codes.setdefault(switches.compiled, (compiled, Code(compiled)))
        compiled, code = made
        meaning = Meaning([("", 0), *(("bitcode", i + 1) for i in range(len(compiled.instructions)))], [], {})
        arrays = tuple(ThreadgroupArray(size, 4, 4, name) for name, size in compiled.arrays)
        library = CheckedLibrary(code.thread, compiled.threadgroup_bytes, arrays, (0, 0), meaning)
        return library, {"bitcode": "\n".join(compiled.instructions)}

    def _switches(self) -> Fidelity:
        return fidelity.current().switched(**self._pinned)

    def _thread(self) -> int:
        """The code for the switches as they stand, made when first asked for."""
        switches = self._switches()
        if (code := self._codes.get(switches.compiled)) is None:
            code = self._codes.setdefault(switches.compiled, Code(self._make(switches)))
        return code.thread


class AppleLibrary:
    """A library of compiled kernels. `names` lists them, `function` makes one ready to be launched."""

    def __init__(self, path: Path) -> None:
        self._container = Container(path)
        self._made: OrderedDict[object, AppleKernel] = OrderedDict()
        self.path = path

    def __contains__(self, name: str) -> bool:
        return name in self._container

    @property
    def names(self) -> tuple[str, ...]:
        """Every kernel's name, in the order of the file."""
        return tuple(self._container)

    def function(
        self, name: str, constants: Mapping[str, ConstantValue] | None = None, *, contraction: bool | None = None
    ) -> AppleKernel:
        """A kernel by name, with values for its function constants (by name, or index as text); the same each time.

        `contraction`: whether a product and a sum that Apple's compiler left to be fused are rounded once, or each.
        None: as the fidelity switch of that name stands at each launch.
        KeyError: no such kernel. ValueError: a constant is missing or unknown. MetallibError: damaged bitcode.
        UnknownFunction: it calls what the runtime lacks, by name.
        """
        if name not in self._container:
            close = difflib.get_close_matches(name, self._container, 3)
            near = f"the nearest are {', '.join(close)}" if close else "`names` lists those that it has"
            raise KeyError(f"{self.path.name} has no kernel {name!r}: {near}")
        key = (name, tuple((constants or {}).items()), contraction)
        if (made := self._made.pop(key, None)) is None:
            made = AppleKernel(partial(compile_kernel, name, self._container[name], constants or {}), contraction)
        self._made[key] = made
        while len(self._made) > KEPT:
            self._made.popitem(last=False)
        return made


@lru_cache(maxsize=8)
def _open(path: Path, changed: int) -> AppleLibrary:
    return AppleLibrary(path)


def load(source: str | Path) -> AppleLibrary:
    """The compiled kernels of an MLX version, such as "0.32.4" (fetched once into the cache), or of a `.metallib` file.

    FileNotFoundError, MetallibError: no such file, or not a library. WheelError: the version cannot be fetched.
    """
    path = metallib(source) if isinstance(source, str) and re.fullmatch(r"\d+\.\d[\w.]*", source) else Path(source)
    return _open(path, path.stat().st_mtime_ns)
