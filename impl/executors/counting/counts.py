"""What a launch does, as numbers: the results of `counted`. Every struct becomes JSON by msgspec."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)

LANES, SECTOR, LINE, BANKS = 32, 32, 128, 32


class Traffic(msgspec.Struct, frozen=True):
    """Accesses of one address space in one direction; "elsewhere" is beyond every array that the kernel was given.

    A request is what the lanes of one simdgroup do together at one access of the kernel in one turn of its loops. Of
    private memory, which is each thread's own, lanes and bytes alone are counted.
    """

    requests: int = 0
    lanes: int = 0  # that took part; a request has 32 places
    bytes: int = 0  # that the lanes asked for, each for itself
    useful: int = 0  # bytes that were asked for, each once a request, however many lanes did
    sectors: int = 0  # of 32 bytes, each once a request
    lines: int = 0  # of 128 bytes, each once a request
    footprint: int = 0  # bytes of the arrays that any thread has touched, by atomics too, each once a launch
    footprint_sectors: int = 0
    cycles: int = 0  # of threadgroup memory, which serves 32 banks of 4 bytes at a time
    conflicts: int = 0  # cycles beyond those that requests of this width take without a conflict

    @property
    def moved(self) -> int:
        """Bytes of the sectors."""
        return self.sectors * SECTOR

    @property
    def coalesced(self) -> float | None:
        """Useful bytes over bytes moved; None where nothing was."""
        return self.useful / self.moved if self.sectors else None

    @property
    def active(self) -> float | None:
        """The share of a simdgroup's 32 lanes that took part; None where there was no request."""
        return self.lanes / (LANES * self.requests) if self.requests else None

    def __add__(self, other: "Traffic") -> "Traffic":
        return _added(self, other)


class Atomics(msgspec.Struct, frozen=True):
    """Atomics of one kind in one address space. `serial`: for each request, the most lanes at one address, added up."""

    requests: int = 0
    lanes: int = 0
    sectors: int = 0
    serial: int = 0

    def __add__(self, other: "Atomics") -> "Atomics":
        return _added(self, other)


class Operations(msgspec.Struct, frozen=True):
    """Operations of simdgroups of one kind, and the lanes that took part in them."""

    requests: int = 0
    lanes: int = 0

    def __add__(self, other: "Operations") -> "Operations":
        return _added(self, other)


class Barriers(msgspec.Struct, frozen=True):
    """Barriers of threadgroups, each once a threadgroup, and of simdgroups, each once a simdgroup."""

    threadgroup: int = 0
    threadgroup_simdgroups: int = 0  # that waited at them
    threadgroup_threads: int = 0
    simdgroup: int = 0
    simdgroup_threads: int = 0

    def __add__(self, other: "Barriers") -> "Barriers":
        return _added(self, other)


class Arithmetic(msgspec.Struct, frozen=True):
    """Instructions of one class: executed by threads, and issued by simdgroups."""

    lanes: int = 0
    issued: int = 0

    def __add__(self, other: "Arithmetic") -> "Arithmetic":
        return _added(self, other)


class Site(msgspec.Struct, frozen=True):
    """The accesses of one line of a kernel's text that are alike. `kind`: "read", "write", or an atomic's name."""

    file: str  # "source" or "header" as given to metal_kernel, else an included header
    line: int  # from 1; 0: the compiler does not tell
    text: str  # the line itself
    kind: str
    space: str
    width: int  # bytes a lane
    traffic: Traffic


class Counts(msgspec.Struct, frozen=True):
    """One launch. Mappings hold what occurred alone, in the order of their keys."""

    kernel: str
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    threads: int
    threadgroups: int
    simdgroups: int
    threadgroup_bytes: int  # of threadgroup memory that a threadgroup takes
    private_bytes: int  # of a thread's variables that are no registers
    registers: int  # of 32 bits, the most that hold values at one point, without a compiler's reuse or spills
    reads: dict[str, Traffic] = {}  # by address space
    writes: dict[str, Traffic] = {}
    atomics: dict[str, Atomics] = {}  # by "device fetch_add" and the like
    simd: dict[str, Operations] = {}  # by "sum", "shuffle", "ballot" and the like
    barriers: Barriers = Barriers()
    arithmetic: dict[str, Arithmetic] = {}  # by class, see docs/counting.md
    sites: tuple[Site, ...] = ()
    compiler: str = ""  # what optimised the kernel: arithmetic, private bytes and registers depend on it

    @property
    def traffic(self) -> Traffic:
        """Reads and writes of device and constant memory, atomics apart; a byte that is both counts in each."""
        spaces = ("device", "constant")
        each = (side[space] for side in (self.reads, self.writes) for space in spaces if space in side)
        return sum(each, Traffic())

    @property
    def active(self) -> float | None:
        """The share of 32 lanes that took part in requests and simdgroup operations; None where there was none."""
        shared = [t for side in (self.reads, self.writes) for space, t in side.items() if space != "private"]
        told: list[Traffic | Atomics | Operations] = [*shared, *self.atomics.values(), *self.simd.values()]
        requests = sum(each.requests for each in told)
        return sum(each.lanes for each in told) / (LANES * requests) if requests else None

    @property
    def issued(self) -> int:
        """Instructions that simdgroups issue: arithmetic, and one for each request, operation and barrier."""
        sides = (self.reads, self.writes, self.atomics, self.simd)
        requests = sum(each.requests for side in sides for each in side.values())
        waits = self.barriers.threadgroup_simdgroups + self.barriers.simdgroup
        return sum(a.issued for a in self.arithmetic.values()) + requests + waits


def scaled(counts: Counts, factor: int) -> Counts:
    """The counts of a launch with `factor` times as many threadgroups that do the same, each with its own arrays.

    Grid, sizes and registers stay, and there are no sites.
    """
    told = {name: getattr(counts, name) * factor for name in ("threads", "threadgroups", "simdgroups")}
    for name in ("reads", "writes", "atomics", "simd", "arithmetic"):
        told[name] = {key: _times(value, factor) for key, value in getattr(counts, name).items()}
    return msgspec.structs.replace(counts, **told, barriers=_times(counts.barriers, factor), sites=())


def _times(value: S, factor: int) -> S:
    return type(value)(**{name: getattr(value, name) * factor for name in value.__struct_fields__})


def _added(one: S, other: S) -> S:
    names = one.__struct_fields__
    return type(one)(**{name: getattr(one, name) + getattr(other, name) for name in names})


def total(launches: Iterable[Counts]) -> Counts:
    """The sum of launches: footprints add up, sizes are the largest, and there are no sites.

    ValueError: there is no launch.
    """
    each = list(launches)
    if not each:
        raise ValueError("expected a launch at least and got none: nothing ran on the host executor")
    return Counts(
        kernel=" + ".join(dict.fromkeys(c.kernel for c in each)),
        grid=each[0].grid if len(each) == 1 else (0, 0, 0),
        threadgroup=each[0].threadgroup if len(each) == 1 else (0, 0, 0),
        threads=sum(c.threads for c in each),
        threadgroups=sum(c.threadgroups for c in each),
        simdgroups=sum(c.simdgroups for c in each),
        threadgroup_bytes=max(c.threadgroup_bytes for c in each),
        private_bytes=max(c.private_bytes for c in each),
        registers=max(c.registers for c in each),
        reads=_merged([c.reads for c in each]),
        writes=_merged([c.writes for c in each]),
        atomics=_merged([c.atomics for c in each]),
        simd=_merged([c.simd for c in each]),
        barriers=sum((c.barriers for c in each), Barriers()),
        arithmetic=_merged([c.arithmetic for c in each]),
        compiler=" + ".join(dict.fromkeys(c.compiler for c in each)),
    )


def _merged(mappings: list[dict[str, S]]) -> dict[str, S]:
    merged: dict[str, S] = {}
    for mapping in mappings:
        for key, value in mapping.items():
            merged[key] = _added(merged[key], value) if key in merged else value
    return dict(sorted(merged.items()))
