"""Where the arrays of a checked launch lie: each in a span of addresses of its own, with a shadow of its units."""

import ctypes
import threading
from dataclasses import dataclass, field

import mlx.core as mx

from mlx_assay.impl.executors import launch, objects

# As in runtime/checker.h.
BUFFERS, ARRAYS = 64, 128
_ARRAY_SHIFT = 24
# An array begins in the middle of its span.
MAX_ARRAY_BYTES = 1 << _ARRAY_SHIFT - 1
# Of the addresses around a device array. With the first, 32 bits of index over elements of 16 bytes stay within them.
_BUFFER_SHIFTS = (37, 34)
_PAGE = 16 * 1024
CELL_BYTES = 40
NO_REGION, INPUT, OUTPUT, ARRAY = range(4)


@dataclass
class Span:
    """An array of a kernel: `bytes` of memory, of which element 0 lies `origin` bytes behind the begin."""

    name: str
    space: str
    kind: int
    bytes: int
    element: int
    unit: int = 4
    origin: int = 0
    source: int = 0  # where its contents are; 0: nowhere
    residue: int | None = None
    known: bool = True  # whether it is written before the kernel runs
    begin: int = 0
    cells: int = 0
    marks: int = 0
    held: list[tuple[int, int]] = field(default_factory=list)


class Space:
    """Address space for the arrays of one launch at a time."""

    def __init__(self) -> None:
        runtime = objects.runtime()
        self._reserve = runtime.assay_check_reserve
        self._reserve.restype, self._reserve.argtypes = ctypes.c_void_p, [ctypes.c_uint64]
        self._commit = runtime.assay_check_commit
        self._commit.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32]
        for self.shift in _BUFFER_SHIFTS:
            size = (BUFFERS << self.shift) + (ARRAYS << _ARRAY_SHIFT) + _PAGE
            if begin := self._reserve(size):
                break
        else:
            raise MemoryError(f"the checker needs {size >> 30} GiB of address space and got none: raise `ulimit -v`")
        self.buffers = -(-begin // _PAGE) * _PAGE
        self.arrays = self.buffers + (BUFFERS << self.shift)

    def _take(self, at: int, bytes_: int) -> tuple[int, int]:
        first = at // _PAGE * _PAGE
        size = -(-(at + bytes_ - first) // _PAGE) * _PAGE
        if not self._commit(first, size, 1):
            raise MemoryError(f"the checker got no {size} bytes for an array")
        return first, size

    def _shadow(self, bytes_: int) -> tuple[int, int]:
        size = -(-bytes_ // _PAGE) * _PAGE
        at = self._reserve(size)
        if not at or not self._commit(at, size, 1):
            raise MemoryError(f"the checker got no {size} bytes for the shadow of an array")
        return at, size

    def place(self, span: Span, number: int) -> None:
        """Gives a span its addresses; threadgroup arrays are counted from 0 as device arrays are."""
        if span.kind == ARRAY:
            span.begin = self.arrays + (2 * number + 1 << _ARRAY_SHIFT - 1)
        else:
            span.begin = self.buffers + (2 * number + 1 << self.shift - 1)
            if span.kind == INPUT and span.source:
                span.begin += displaced(span.source, span.residue)
        if not span.bytes:
            return
        span.held.append(self._take(span.begin, span.bytes))
        if span.source:
            ctypes.memmove(span.begin, span.source, span.bytes)
        if span.kind == INPUT:
            return
        for name, size in (("cells", (span.bytes // span.unit + 2) * CELL_BYTES), ("marks", span.bytes)):
            if name == "cells" or not span.known:
                taken = self._shadow(size)
                setattr(span, name, taken[0])
                span.held.append(taken)

    def release(self, span: Span) -> None:
        """Gives the memory back and keeps the addresses."""
        for at, size in span.held:
            self._commit(at, size, 0)
        span.held.clear()


def _probe() -> int:
    """Where MLX's own buffers begin, modulo 16; -1: here or there."""
    found = set()
    for n in (8, 100, 5000):
        array = mx.arange(n)
        mx.eval(array)
        found.add(launch.layout(array)[0] % 16)
    return found.pop() if len(found) == 1 else -1


_known_residue: int | None = None


def displaced(address: int, begin: int | None) -> int:
    """How far behind a multiple of 16 an input lies on a GPU, whose arrays begin at one.

    `begin`: where memory of its kind begins here, modulo 16; None: as MLX's own.
    """
    begin = _residue() if begin is None else begin
    return (address - begin) % 16 if begin >= 0 else address % 8


def _residue() -> int:
    global _known_residue
    if _known_residue is None:
        _known_residue = _probe()
    return _known_residue


_idle: list[Space] = []
_lock = threading.Lock()


def take_space() -> Space:
    """A space that nobody uses."""
    with _lock:
        if _idle:
            return _idle.pop()
    return Space()


def give_space(space: Space) -> None:
    """For the next launch."""
    with _lock:
        _idle.append(space)
