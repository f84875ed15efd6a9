"""The door to Apple's compiled kernels: load a library, take a function out of it, launch it on arrays."""

import ctypes
import difflib
import operator
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, SupportsIndex

from mlx_assay.impl.executors import choice, launch, objects
from mlx_assay.impl.executors.apple.binding import Binding
from mlx_assay.impl.executors.apple.compilation import Code, Compiled, ConstantValue, compile_kernel
from mlx_assay.impl.executors.apple.container import Container
from mlx_assay.impl.executors.apple.wheel import metallib

Axes = int | Sequence[int]


class LaunchError(RuntimeError):
    """A launch that could not be finished: threads wait at different barriers, or there is no memory."""


class AppleKernel:
    """One compiled kernel on this machine's CPU.

    `opaque` names the functions whose bits this machine's C library decides, not a GPU; `ordered` those whose sums are
    added in the runtime's order. What neither list names is exact arithmetic, rounded as Metal rounds.
    """

    def __init__(self, compiled: Compiled) -> None:
        self.name = compiled.name
        self.arguments = compiled.arguments
        self.buffers = tuple(a for a in compiled.arguments if a.kind == "buffer")
        self.constants = compiled.constants
        self.threadgroup_bytes = compiled.threadgroup_bytes
        self.opaque = list(compiled.opaque)
        self.ordered = list(compiled.ordered)
        self._sites = compiled.sites
        self._binding = Binding(self.name, self.buffers, self.constants)
        self._code = Code(compiled)
        self._launch = objects.runtime().assay_launch

    def __call__(
        self,
        buffers: Sequence[Any] | Mapping[int, Any],
        *,
        threadgroup: Axes,
        grid: Axes | None = None,
        threadgroups: Axes | None = None,
        poison: int | None = None,
        schedule: str | None = None,
    ) -> None:
        """Runs every thread; results are in the writable arrays among `buffers`.

        `buffers` by buffer index (a sequence, or a mapping): NumPy or MLX arrays, NumPy scalars, bytes, or None for one
        that MLX leaves unbound; those that the function constants switch off may be left out. A buffer that the kernel
        writes is a writable NumPy array. Strides are the kernel's own matter: it gets the address of the first element.
        One of `grid` (threads, as Metal's dispatchThreads) and `threadgroups` (as dispatchThreadgroups) is given.
        Threadgroup memory holds the 32-bit pattern `poison` at the start of every threadgroup. `poison` and `schedule`
        default to what `executors.poison` and `executors.schedule` have set.

        ValueError, TypeError: a buffer or a size is not what the kernel takes. LaunchError: it could not be finished.
        """
        keep: list[object] = []
        addresses = self._binding.addresses(buffers, keep)
        threadgroup, total = _axes(threadgroup), self._grid(_axes(threadgroup), grid, threadgroups)
        total, threadgroup = launch.check_grid(total, threadgroup)
        name = schedule or choice.current_schedule()
        if name not in choice.SCHEDULES:
            raise ValueError(f"schedule is {name!r}, expected one of {', '.join(choice.SCHEDULES)}")
        pattern = poison if poison is not None else choice.current_poison()
        if all(total):
            filled = launch.DEFAULT_POISON if pattern is None else pattern
            self._run(addresses, total, threadgroup, filled, choice.SCHEDULES.index(name))

    def _grid(self, threadgroup: Sequence[int], grid: Axes | None, threadgroups: Axes | None) -> tuple[int, ...]:
        if (grid is None) == (threadgroups is None):
            raise TypeError(f"kernel {self.name!r}: expected either grid= (threads) or threadgroups=, and one of them")
        if grid is not None:
            return _axes(grid)
        return tuple(n * t for n, t in zip(_axes(threadgroups), threadgroup, strict=True))

    def _run(
        self, addresses: list[int], grid: Sequence[int], threadgroup: Sequence[int], poison: int, schedule: int
    ) -> None:
        request = launch._Launch(
            thread=self._code.thread, threadgroup_bytes=self.threadgroup_bytes, poison=poison, schedule=schedule
        )
        request.grid[:] = grid
        request.threadgroup[:] = threadgroup
        passed = (ctypes.c_uint64 * max(len(addresses), 1))(*addresses)
        request.buffers = ctypes.addressof(passed)
        fault = self._launch(ctypes.byref(request))
        if fault == 1:
            first, second = (f"{self._sites[n - 1]} (number {n})" for n in request.lines)
            raise LaunchError(
                f"kernel {self.name!r}: threads of one threadgroup wait at different barriers, {first} and {second}: "
                "check the grid and the threadgroup against MLX's dispatch of this kernel"
            )
        if fault:
            raise LaunchError(f"kernel {self.name!r}: no memory for the threads' stacks (256 MiB of address space)")


def _axes(value: Axes | None) -> tuple[int, ...]:
    if value is None or isinstance(value, SupportsIndex):
        return (0 if value is None else operator.index(value), 1, 1)
    return (*(int(n) for n in value), *(1,) * (3 - len(value)))


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
