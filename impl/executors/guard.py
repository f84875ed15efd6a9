"""Guarded launches: every array gets a place of its own that ends where memory which nobody may touch begins.

There is such memory before it too, and the bytes between that and the array are looked at afterwards. So a kernel that
goes beyond an array, or writes into an input, is told, and nothing but its own copies is harmed.
"""

import ctypes
import mmap
import threading
from types import TracebackType
from typing import NamedTuple

PAGE = mmap.PAGESIZE
MARGIN = 256 << 20
"""Bytes of address space on each side of an array that belong to nobody: a wrong stride seldom goes farther."""

_CANARY = b"\xa5" * PAGE
_MOST_KEPT = 256 << 20
_NONE, _READ_WRITE = mmap.PROT_READ & 0, mmap.PROT_READ | mmap.PROT_WRITE

STRAY, STACK_OVERFLOW, STRAY_THREADGROUP = 4, 5, 6
"""Faults as the scheduler numbers them."""

_VERBS = ("touches", "reads", "writes")

_c = ctypes.CDLL(None, use_errno=True)
_c.mmap.restype = ctypes.c_void_p
_c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_c.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_c.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class StrayAccess(RuntimeError):
    """A kernel touched what is not its own."""


class _Pool(threading.local):
    """This thread's mappings that are not in use, by their number of pages."""

    def __init__(self) -> None:
        self.free: dict[int, list[int]] = {}
        self.bytes = 0

    def take(self, pages: int) -> int:
        """The address of `pages` for use, with a margin on each side that nobody may touch."""
        if kept := self.free.get(pages):
            self.bytes -= pages * PAGE
            return kept.pop()
        size = pages * PAGE
        reserved = _c.mmap(None, size + 2 * MARGIN, _NONE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        if reserved in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"no address space for a guarded copy of {size} bytes")
        base = int(reserved) + MARGIN
        if pages and _c.mprotect(base, size, _READ_WRITE):
            _c.munmap(reserved, size + 2 * MARGIN)
            raise MemoryError(f"no memory for a guarded copy of {size} bytes")
        return base

    def give(self, base: int, pages: int) -> None:
        if self.bytes + pages * PAGE > _MOST_KEPT:
            _c.munmap(base - MARGIN, pages * PAGE + 2 * MARGIN)
            return
        self.bytes += pages * PAGE
        self.free.setdefault(pages, []).append(base)


_pool = _Pool()


class _Place(NamedTuple):
    name: str
    base: int
    pages: int
    start: int
    original: int
    before: int
    size: int
    element: int
    output: bool


class Guard:
    """The arrays of one launch in places of their own, as a context."""

    def __init__(self) -> None:
        self._places: list[_Place] = []

    def __enter__(self) -> "Guard":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for place in self._places:
            _pool.give(place.base, place.pages)

    def place(self, name: str, address: int, before: int, size: int, element: int, output: bool = False) -> int:
        """The address that the kernel gets for an array of `size` bytes, `before` of them below `address`."""
        pages = -(-size // PAGE)
        base = _pool.take(pages)
        start, original = base + pages * PAGE - size, address - before
        self._places.append(_Place(name, base, pages, start, original, before, size, element, output))
        ctypes.memset(base, _CANARY[0], start - base)
        ctypes.memmove(start, original, size)
        return start + before

    def finish(self, kernel: str) -> None:
        """Gives the outputs back. StrayAccess: the kernel wrote beside an array, or into an input."""
        for place in self._places:
            if _c.memcmp(place.base, _CANARY, place.start - place.base):
                raise StrayAccess(_told(kernel, f"writes {place.name!r} before its first element"))
            if place.output:
                ctypes.memmove(place.original, place.start, place.size)
            elif _c.memcmp(place.original, place.start, place.size):
                raise StrayAccess(_told(kernel, f"writes into its input {place.name!r}"))

    def error(self, kernel: str, fault: int, address: int, access: int) -> StrayAccess:
        """What a fault that ended the launch means."""
        verb = _VERBS[access]
        if fault == STACK_OVERFLOW:
            what = "takes more than 240 KiB of private memory a thread: its arrays are too large, or it calls itself"
        elif fault == STRAY_THREADGROUP:
            what = f"{verb} threadgroup memory beyond its own"
        else:
            what = f"{verb} address {address:#x}, which belongs to none of its arrays"
            for place in self._places:
                if place.base - MARGIN <= address < place.start + place.size + MARGIN:
                    index = (address - place.start - place.before) // place.element
                    what = f"{verb} {place.name!r} at element {index}, and it has {place.size // place.element}"
        return StrayAccess(_told(kernel, what))


def _told(kernel: str, what: str) -> str:
    return f"[metal_kernel] kernel {kernel!r} on the host executor {what} (mlx-assay check names the line)"
