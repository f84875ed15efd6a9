"""A whole kernel with its buffers by index, as MLX's own are written: what both doors' kernel objects share."""

import ctypes
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np

from mlx_assay.impl.executors import choice, crew, launch, objects
from mlx_assay.impl.executors.binding import Argument, Binding, ConstantValue
from mlx_assay.impl.executors.checker.call import extent, launched
from mlx_assay.impl.executors.checker.compilation import CheckedLibrary
from mlx_assay.impl.executors.checker.run import Argument as CheckedArgument
from mlx_assay.impl.executors.checker.session import Session
from mlx_assay.impl.executors.checker.session import current as checking
from mlx_assay.impl.executors.counting.compilation import CountedLibrary
from mlx_assay.impl.executors.counting.request import space
from mlx_assay.impl.executors.counting.run import run as counted_run
from mlx_assay.impl.executors.counting.session import current as counting
from mlx_assay.impl.executors.counting.session import refuse

Axes = int | Sequence[int]


class LaunchError(RuntimeError):
    """A launch that could not be finished: threads wait at different barriers, or there is no memory."""


class RawKernel:
    """A kernel compiled for this machine."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[Argument],
        constants: Mapping[str, ConstantValue],
        threadgroup_bytes: int,
    ) -> None:
        self.name = name
        self.arguments = tuple(arguments)
        self.buffers = tuple(a for a in arguments if a.kind == "buffer")
        self.constants = dict(constants)
        self.threadgroup_bytes = threadgroup_bytes
        self._binding = Binding(self.name, self.buffers, self.constants)
        self._launch = objects.runtime().assay_launch

    def _thread(self) -> int:
        """The address of the function that runs one thread."""
        raise NotImplementedError

    def _site(self, number: int) -> str:
        return f"source line {number}"

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
        code = choice.code(name)
        pattern = poison if poison is not None else choice.current_poison()
        filled = launch.DEFAULT_POISON if pattern is None else pattern
        if (session := checking()) is not None:
            refuse(self.name, "the checker", "count it outside of checked()")
            self._checked(session, keep, addresses, total, threadgroup)
        elif counting() is not None:
            self._count(keep, addresses, total, threadgroup, filled, code)
        elif all(total):
            self._run(addresses, total, threadgroup, filled, code)

    def _countable(self) -> CountedLibrary:
        """The kernel's counted build."""
        refuse(self.name, "code that Apple has compiled", "count a kernel's text")
        raise NotImplementedError

    def _count(
        self,
        keep: list[object],
        addresses: list[int],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        poison: int,
        schedule: int,
    ) -> None:
        arguments, _ = self._arguments(keep, addresses)
        spaces = [space(argument.type) for argument in self.buffers]
        how = (arguments, spaces, grid, threadgroup, poison, schedule)
        self._check(*counted_run(self.name, self._countable(), {}, *how))

    def _checkable(self) -> tuple[CheckedLibrary, dict[str, str]]:
        """The kernel's checked build, and the texts that its places are in."""
        raise NotImplementedError

    def _checked(
        self,
        session: Session,
        keep: list[object],
        addresses: list[int],
        grid: Sequence[int],
        threadgroup: Sequence[int],
    ) -> None:
        """Runs under the checker; the written arrays hold what its first run left in them."""
        arguments, written = self._arguments(keep, addresses)
        found = launched(session, self.name, *self._checkable(), arguments, grid, threadgroup)
        for (address, size), bytes_ in zip(written, found or (), strict=found is not None):
            ctypes.memmove(address, bytes_, size)

    def _arguments(
        self, keep: list[object], addresses: list[int]
    ) -> tuple[list[CheckedArgument], list[tuple[int, int]]]:
        """The buffers as the checker knows them, and address and bytes of those that are written."""
        held = iter(keep)
        arguments, written = [], []
        for argument, address in zip(self.buffers, addresses, strict=True):
            if not address:
                arguments.append(CheckedArgument(argument.name, 0, 0, 0, 1))
                continue
            array: Any = next(held)
            before, size = extent(array.shape, launch.layout(array)[1], array.itemsize)
            begin = address - before
            initial = ctypes.string_at(begin, size) if argument.writable else None
            residue = 0 if isinstance(array, np.ndarray) else None
            told = (before, size, array.itemsize, argument.writable, initial, residue)
            arguments.append(CheckedArgument(argument.name, address, *told))
            if argument.writable:
                written.append((begin, size))
        return arguments, written

    def _grid(self, threadgroup: Sequence[int], grid: Axes | None, threadgroups: Axes | None) -> tuple[int, ...]:
        if (grid is None) == (threadgroups is None):
            raise TypeError(f"kernel {self.name!r}: expected either grid= (threads) or threadgroups=, and one of them")
        if grid is not None:
            return _axes(grid)
        return tuple(n * t for n, t in zip(_axes(threadgroups), threadgroup, strict=True))

    def _run(
        self, addresses: list[int], grid: Sequence[int], threadgroup: Sequence[int], poison: int, schedule: int
    ) -> None:
        request = launch.prepare(self._thread(), self.threadgroup_bytes, grid, threadgroup, poison, schedule)
        passed = (ctypes.c_uint64 * max(len(addresses), 1))(*addresses)
        request.buffers = ctypes.addressof(passed)
        self._check(crew.run(self._launch, request), request.lines)

    def _check(self, fault: int, lines: Sequence[int]) -> None:
        if fault == 1:
            first, second = (self._site(n) for n in lines)
            raise LaunchError(
                f"kernel {self.name!r}: threads of one threadgroup wait at different barriers, {first} and {second}: "
                "check the grid and the threadgroup against MLX's dispatch of this kernel"
            )
        if fault:
            raise LaunchError(f"kernel {self.name!r}: no memory for the threads' stacks (256 MiB of address space)")


def _axes(value: Axes | None) -> tuple[int, ...]:
    if type(value) is tuple and len(value) == 3:
        return (int(value[0]), int(value[1]), int(value[2]))
    if value is None or isinstance(value, SupportsIndex):
        return (0 if value is None else operator.index(value), 1, 1)
    return (*(int(n) for n in value), *(1,) * (3 - len(value)))


class RawLibrary(Protocol):
    """Kernels by name."""

    def __contains__(self, name: str) -> bool: ...

    def function(self, name: str, constants: Mapping[str, ConstantValue] | None = None) -> RawKernel:
        """A kernel by name, with values for its function constants."""
