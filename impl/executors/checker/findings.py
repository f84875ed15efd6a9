"""From the runtime's events to findings: names, indices, places and sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlx_assay.impl.executors.checker.finding import Access, Finding, Kind, Place
from mlx_assay.impl.executors.checker.instructions import size_of
from mlx_assay.impl.executors.checker.memory import ARRAY, BUFFERS, INPUT, Span
from mlx_assay.impl.executors.checker.places import places
from mlx_assay.impl.executors.checker.request import NOWHERE, OBJECTS, Event, Request

if TYPE_CHECKING:
    from mlx_assay.impl.executors.checker.run import Work

# As enum EventKind in runtime/checker.h.
KINDS = (
    None,
    Kind.RACE,
    Kind.SIMDGROUP_RACE,
    Kind.THREADGROUP_RACE,
    Kind.SAME_VALUE_WRITE,
    Kind.BARRIER_FLAGS,
    Kind.OUT_OF_BOUNDS,
    Kind.MISALIGNED,
    Kind.UNINITIALISED,
    Kind.DIVERGENT_BARRIER,
    Kind.DIVERGENT_SIMD,
    Kind.EXIT_BEFORE_BARRIER,
    Kind.INACTIVE_LANE,
    Kind.SHIFT,
    Kind.HANG,
    Kind.WRITE_TO_INPUT,
    Kind.PARTIAL_SIMD,
)
HOW = ("read", "write", "atomic read", "atomic write", *("atomic read-modify-write",) * 4)
_DIVERGENCE = {Kind.DIVERGENT_BARRIER, Kind.DIVERGENT_SIMD, Kind.PARTIAL_SIMD, Kind.EXIT_BEFORE_BARRIER}
_PAIRS = {Kind.RACE, Kind.SIMDGROUP_RACE, Kind.THREADGROUP_RACE, Kind.SAME_VALUE_WRITE, Kind.BARRIER_FLAGS}
_MEETING = {
    Kind.DIVERGENT_BARRIER: "barrier",
    Kind.DIVERGENT_SIMD: "simdgroup operation",
    Kind.PARTIAL_SIMD: "simdgroup operation",
    Kind.EXIT_BEFORE_BARRIER: "barrier",
    Kind.INACTIVE_LANE: "simdgroup operation",
    Kind.SHIFT: "shift",
    Kind.HANG: "loop",
}
# As kWindow in runtime/checker.h.
_WINDOW = 1
_FLAGS = {1: "mem_device", 2: "mem_threadgroup", 4: "mem_texture"}


def flags_named(flags: int) -> str:
    """A barrier's flags in Metal's words."""
    return " | ".join(name for bit, name in _FLAGS.items() if flags & bit) or "mem_none"


def element_size(type_: str) -> int:
    """The bytes of an element of a variable, by its type in LLVM's words."""
    if type_.startswith("<"):
        type_ = type_[1:-1].partition(" x ")[2]
    while type_.startswith("["):
        type_ = type_[1:-1].partition(" x ")[2]
    return size_of(type_) or 1


class Reader:
    """Reads the events of one run."""

    def __init__(self, work: "Work", spans: Sequence[Span], schedule: str) -> None:
        self.work = work
        self.schedule = schedule
        self.places = places(work.library.meaning.places, work.texts)
        devices = [s for s in spans if s.kind != ARRAY]
        self.spans = dict(enumerate(devices)) | {
            BUFFERS + i: s for i, s in enumerate(s for s in spans if s.kind == ARRAY)
        }

    def findings(self, asked: Request) -> list[Finding]:
        """Every event as a finding."""
        return [self._finding(e) for e in asked.events()]

    def inactive(self, asked: Request) -> dict[int, Place]:
        """The numbers and places of the operations that have read a lane that is not there."""
        return {e.site: self.places[e.site] for e in asked.events() if KINDS[e.kind] is Kind.INACTIVE_LANE}

    def _group(self, order: int) -> tuple[int, int, int]:
        x, y, z = self.work.groups
        n = x * y * z - 1 - order if self.schedule == "reverse" else order
        return n % x, n // x % y, n // (x * y)

    def _thread(self, index: int, group: tuple[int, int, int]) -> tuple[int, int, int]:
        left = (g - p * t for g, p, t in zip(self.work.grid, group, self.work.threadgroup, strict=True))
        x, y, _ = (min(t, n) for t, n in zip(self.work.threadgroup, left, strict=True))
        return index % x, index // x % y, index // (x * y)

    def _access(self, how: str, site: int, thread: int, order: int) -> Access:
        group = self._group(order)
        return Access(how, self.places[site], self._thread(thread, group), group)

    def _where(self, e: Event) -> tuple[str, str, int | None, int | None]:
        """Array, space, index and offset."""
        if e.region == NOWHERE:
            return "", "", None, None
        offset = e.offset - (1 << 64) if e.offset >> 63 else e.offset
        if e.region >= OBJECTS:
            name, type_, private = self.work.library.meaning.objects[e.region - OBJECTS]
            return name, "thread" if private else "constant", offset // element_size(type_), offset
        span = self.spans[e.region]
        offset -= span.origin
        return span.name, span.space, offset // span.element, offset

    def _finding(self, e: Event) -> Finding:
        kind = KINDS[e.kind]
        assert kind is not None
        array, space, index, offset = self._where(e)
        accesses = [self._access(_MEETING.get(kind, HOW[e.how & 7]), e.site, e.thread, e.threadgroup)]
        barrier: Place | None = None
        if kind in _PAIRS:
            accesses.append(self._access(HOW[e.other_how & 7], e.other_site, e.other_thread, e.other_threadgroup))
        elif kind is Kind.EXIT_BEFORE_BARRIER and e.other_site:
            accesses.append(self._access("return", e.other_site, e.other_thread, e.threadgroup))
        elif kind in _DIVERGENCE and e.other_site:
            accesses.append(self._access("waits", e.other_site, e.other_thread, e.threadgroup))
        if kind is Kind.BARRIER_FLAGS:
            barrier = self.places[e.barrier_site]
        place = self._place(e, array, index, offset)
        return Finding(
            kind,
            self.work.kernel,
            self._message(kind, e, place, array, space),
            tuple(accesses),
            array,
            space,
            index,
            offset,
            barrier,
            self.schedule,
            e.count,
        )

    def _type(self, e: Event) -> str:
        return self.work.library.meaning.objects[e.region - OBJECTS][1] if e.region >= OBJECTS else ""

    def _place(self, e: Event, array: str, index: int | None, offset: int | None) -> str:
        type_ = self._type(e)
        if type_ and not array:
            return f"component {index} of a vector"
        if index is None or not array:
            return "memory of no array"
        if "%" in type_:
            return f"byte {offset} of {array}" if offset or type_[0] == "[" else array
        return array if type_ and index == 0 and type_[0] not in "<[" else f"{array}[{index}]"

    def _divergence(self, kind: Kind, e: Event) -> str:
        """Who is missing, and where: at another place, at the same one for another time, or at the kernel's end."""
        thread = self._thread(e.other_thread, self._group(e.threadgroup))
        ended = "" if e.other_site else f": thread {thread} has come to the kernel's end without it"
        if kind is Kind.EXIT_BEFORE_BARRIER:
            return f"threads, {thread} among them, have returned before a barrier that others reach"
        if kind is Kind.DIVERGENT_SIMD:
            return f"only some lanes of a simdgroup reach an operation that needs all of them{ended}"
        if kind is Kind.PARTIAL_SIMD:
            return f"only some lanes of a simdgroup reach an operation, which acts on those alone{ended}"
        if ended:
            return f"some threads of a threadgroup wait at a barrier that others never reach{ended}"
        if e.other_site == e.site:
            return f"threads of one threadgroup wait at one barrier in unequal turns or calls, {thread} among them"
        return "threads of one threadgroup wait at different barriers"

    def _size(self, e: Event, array: str) -> str:
        if "%" in self._type(e):
            return f"{array} is smaller"
        if e.region >= OBJECTS:
            return f"{array or 'it'} has {self._elements(e)} elements"
        span = self.spans[e.region]
        return f"{array} has {span.bytes // span.element} elements"

    def _elements(self, e: Event) -> int:
        type_ = self.work.library.meaning.objects[e.region - OBJECTS][1]
        return (size_of(type_) or 1) // element_size(type_)

    def _message(self, kind: Kind, e: Event, place: str, array: str, space: str) -> str:
        how = HOW[e.how & 7]
        past = {"read": "reads", "write": "writes"}.get(how, f"does an {how} of")
        other = {"read": "reads", "write": "writes"}.get(HOW[e.other_how & 7], f"does an {HOW[e.other_how & 7]} of")
        if kind is Kind.RACE:
            return f"one thread {past} {place} and one of another simdgroup {other} it, with no barrier between them"
        if kind is Kind.SIMDGROUP_RACE:
            return f"one lane {past} {place} and another lane of its simdgroup {other} it, with no barrier between them"
        if kind is Kind.THREADGROUP_RACE:
            return f"one threadgroup {past} {place} and another one {other} it, and nothing orders threadgroups"
        if kind is Kind.SAME_VALUE_WRITE:
            return f"two threads write {place} without an order, and both write the value that it holds"
        if kind is Kind.BARRIER_FLAGS:
            needed = "mem_threadgroup" if space == "threadgroup" else "mem_device"
            return (
                f"one thread {past} {place} and another {other} it, and the barrier between them has "
                f"{flags_named(e.barrier_flags)} where {needed} is needed"
            )
        if kind is Kind.OUT_OF_BOUNDS:
            bounds = f"; {self._size(e, array)}" if array or space else ""
            return f"{past} {place}{bounds}"
        if kind is Kind.MISALIGNED:
            return f"{past} {place} as a type that needs an alignment of {e.size} bytes"
        if kind is Kind.UNINITIALISED:
            return f"reads {place}, which nobody has written"
        if kind is Kind.WRITE_TO_INPUT:
            return f"writes {place}, an input"
        if kind in _DIVERGENCE:
            return self._divergence(kind, e)
        if kind is Kind.INACTIVE_LANE and e.size == _WINDOW:
            return "fills by a window that Metal leaves open: expected 2, 4, 8, 16 or 32 lanes, of a quad 2 or 4"
        if kind is Kind.INACTIVE_LANE:
            return "reads the value of a lane that takes no part in the operation, or does not exist"
        if kind is Kind.SHIFT:
            count = e.offset - (1 << 64) if e.offset >> 63 else e.offset
            if 1 << 31 <= count < 1 << 32:
                count -= 1 << 32  # a negative int, most likely, of which the bits alone are known
            return f"shifts a value of {e.size} bits by {count}"
        return "the kernel runs longer than its deadline"


__all__ = ["INPUT", "KINDS", "Reader", "element_size", "flags_named"]
