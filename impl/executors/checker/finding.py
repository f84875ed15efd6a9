"""What the checker says of a kernel: a kind of fault, where it stands in the text, and which thread met it."""

from enum import StrEnum

import msgspec


class Severity(StrEnum):
    """How much a finding weighs: an error is undefined behaviour, a warning may be meant, a note is harmless."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(StrEnum):
    """The classes of faults, by the names that reports and filters use."""

    RACE = "race"  # two simdgroups of one threadgroup
    SIMDGROUP_RACE = "simdgroup-race"  # two lanes of one simdgroup without a simdgroup_barrier
    THREADGROUP_RACE = "threadgroup-race"  # two threadgroups
    SAME_VALUE_WRITE = "same-value-write"  # a race whose writers write the bits that stand there
    BARRIER_FLAGS = "barrier-flags"  # a barrier lies between, and its flags do not name this memory
    DIVERGENT_BARRIER = "divergent-barrier"
    DIVERGENT_SIMD = "divergent-simd"  # of an operation that needs every lane
    PARTIAL_SIMD = "partial-simd"  # of one that is defined over the lanes that take part
    EXIT_BEFORE_BARRIER = "exit-before-barrier"
    OUT_OF_BOUNDS = "out-of-bounds"
    WRITE_TO_INPUT = "write-to-input"
    MISALIGNED = "misaligned"
    UNINITIALISED = "uninitialised-read"
    INACTIVE_LANE = "inactive-lane"
    SHIFT = "shift-count"
    THREADGROUP_MEMORY = "threadgroup-memory"  # more than 32 KiB
    THREADS = "too-many-threads"  # more than 1,024 in a threadgroup
    UNWRITTEN = "unwritten-output"
    DEPENDS_ON_SCHEDULE = "depends-on-schedule"
    ATOMIC_ORDER = "atomic-order"  # the same, where atomics alone write what differs
    DEPENDS_ON_GARBAGE = "depends-on-garbage"
    HANG = "hang"
    CRASH = "crash"


SEVERITY = dict.fromkeys(Kind, Severity.ERROR) | {
    Kind.SAME_VALUE_WRITE: Severity.NOTE,
    Kind.PARTIAL_SIMD: Severity.WARNING,
    Kind.EXIT_BEFORE_BARRIER: Severity.WARNING,
    Kind.ATOMIC_ORDER: Severity.WARNING,
}


class Place(msgspec.Struct, frozen=True):
    """A place in a kernel's text: `file` is "source" or "header" as given to metal_kernel, else an included header."""

    file: str
    line: int  # from 1, within that text
    text: str = ""  # the line itself, without surrounding blanks


class Access(msgspec.Struct, frozen=True):
    """One of the accesses, or one of the waiting threads, that a finding is about."""

    how: str  # "read", "write", "atomic read", "atomic write", "atomic read-modify-write", "barrier", ...
    place: Place
    thread: tuple[int, int, int] | None = None  # thread_position_in_threadgroup
    threadgroup: tuple[int, int, int] | None = None  # threadgroup_position_in_grid


class Finding(msgspec.Struct, frozen=True):
    """A fault, once for each kind and pair of lines. `accesses[0]` is the one that met it."""

    kind: Kind
    kernel: str
    message: str  # one sentence, without the place
    accesses: tuple[Access, ...] = ()
    array: str = ""  # the argument, threadgroup array or variable
    space: str = ""  # "device", "constant", "threadgroup" or "thread"
    index: int | None = None  # of the element, which may lie outside
    offset: int | None = None  # in bytes from the array's begin
    barrier: Place | None = None  # of BARRIER_FLAGS: the barrier that does not order this memory
    schedule: str = ""  # under which it was met first
    count: int = 1

    @property
    def severity(self) -> Severity:
        """Of its kind."""
        return SEVERITY[self.kind]

    @property
    def place(self) -> Place | None:
        """Where a reader should look first."""
        return self.accesses[0].place if self.accesses else None
