"""What the runtime is told of a checked launch, and what it tells: the layouts of runtime/checker.h."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

from mlx_assay.impl.executors import objects
from mlx_assay.impl.executors.checker import memory
from mlx_assay.impl.executors.checker.compilation import CheckedLibrary
from mlx_assay.impl.executors.checker.memory import Space, Span

EVENTS = 512
NOWHERE, OBJECTS = 0xFFFF, 0x10000


@dataclass(frozen=True)
class Condition:
    """How one run differs from others: the schedule by name and code, what memory holds, and how long it may take.

    `garbage_site`: at this place alone, lanes that are not there leave another value; 0: nowhere.
    """

    schedule: str
    code: int
    poison: int
    seconds: float
    garbage_site: int = 0
    garbage: int = 0


# Large, small and nothing, in f16, bfloat, f32 and integers alike: one of them wins over whatever it is compared with.
GARBAGE = (0x7B007B00, 0xFB00FB00, 0)


class _Region(ctypes.Structure):
    _fields_ = (
        ("begin", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("kind", ctypes.c_uint32),
        ("unit_shift", ctypes.c_uint32),
        ("cells", ctypes.c_void_p),
        ("known", ctypes.c_void_p),
        ("atomics", ctypes.c_uint64),
    )


class _Input(ctypes.Structure):
    _fields_ = (("begin", ctypes.c_uint64), ("bytes", ctypes.c_uint64))


class Event(ctypes.Structure):
    """One finding of the runtime's."""

    _fields_ = (
        *((n, ctypes.c_uint32) for n in ("kind", "site", "other_site", "count")),
        *((n, ctypes.c_uint32) for n in ("thread", "other_thread", "threadgroup", "other_threadgroup")),
        *((n, ctypes.c_uint32) for n in ("region", "how", "other_how", "size")),
        ("offset", ctypes.c_uint64),
        *((n, ctypes.c_uint32) for n in ("barrier_site", "barrier_flags")),
    )


class _Check(ctypes.Structure):
    _fields_ = (
        ("buffers_begin", ctypes.c_uint64),
        ("buffer_shift", ctypes.c_uint64),
        ("ticks", ctypes.c_uint64),
        ("input", _Input * memory.BUFFERS),
        ("region", _Region * (memory.BUFFERS + memory.ARRAYS)),
        ("garbage", ctypes.c_uint32),
        ("other_garbage", ctypes.c_uint32),
        ("garbage_site", ctypes.c_uint32),
        ("objects", ctypes.c_uint32),
        ("private_poison", ctypes.c_uint32),
        ("arrays_begin", ctypes.c_uint64),
        ("object", ctypes.c_void_p),
        ("began", ctypes.c_void_p),
        ("released", ctypes.c_void_p),
        ("nanoseconds", ctypes.c_uint64),
        ("events", ctypes.c_uint32),
        ("dropped", ctypes.c_uint32),
        ("event", Event * EVENTS),
    )


class Request:
    """The runtime's memory of one checked run."""

    def __init__(
        self, space: Space, spans: Sequence[Span], library: CheckedLibrary, groups: int, condition: Condition
    ) -> None:
        size = objects.runtime().assay_check_bytes()
        self._held = ctypes.create_string_buffer(size + 64)
        at = -(-ctypes.addressof(self._held) // 64) * 64
        self.check = _Check.from_address(at)
        self.address = at
        self._clocks = (ctypes.c_uint32 * (2 * groups + 2))()
        devices, arrays = 0, 0
        for span in spans:
            if span.kind == memory.ARRAY:
                number, arrays = memory.BUFFERS + arrays, arrays + 1
            else:
                number, devices = devices, devices + 1
            if span.kind == memory.INPUT:
                self.check.input[number].begin, self.check.input[number].bytes = span.begin, span.bytes
            region = self.check.region[number]
            region.begin, region.bytes, region.kind = span.begin, span.bytes, span.kind
            region.unit_shift = span.unit.bit_length() - 1
            region.cells, region.known = span.cells or None, span.marks or None
        self.check.garbage = condition.poison ^ 0x00110011
        self.check.other_garbage = condition.garbage
        self.check.garbage_site = condition.garbage_site
        self.check.private_poison = condition.poison
        self.check.buffer_shift = space.shift
        self.check.object, self.check.objects = library.constants
        self.check.buffers_begin, self.check.arrays_begin = space.buffers, space.arrays
        self.check.began = ctypes.addressof(self._clocks)
        self.check.released = ctypes.addressof(self._clocks) + 4 * (groups + 1)
        self.check.nanoseconds = int(condition.seconds * 1e9)

    def atomic(self, number: int) -> bool:
        """Whether an atomic has written to the device array of this number."""
        return bool(self.check.region[number].atomics)

    def events(self) -> list[Event]:
        """What was found."""
        return list(self.check.event[: self.check.events])
