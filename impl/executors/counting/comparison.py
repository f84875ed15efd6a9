"""Which of two forms of one work does less: each launch is bound by the resource that it asks most of.

The result is in units, cycles of a device that is never kept waiting by anything else. It is a lower bound of a kind
and an order between forms; it is no time.
"""

from collections.abc import Sequence

import msgspec

from mlx_assay.impl.executors.counting.counts import SECTOR, Counts
from mlx_assay.impl.executors.counting.devices import H200, DeviceClass

_JOINING = {"sum", "product", "max", "min", "and", "or", "xor", "prefix_sum", "prefix_product"}
_STEPS, _QUAD_STEPS = 5, 2
"""Of a reduction or a scan over 32 lanes, or 4: each a shuffle and an operation."""

_MATRIX, _PRODUCTS = "matrix_multiply_accumulate", 16
"""A product of 8 x 8 matrices is as many fused operations of each lane."""

_WEIGHTS = {"long": 2, "division": 8}
"""32-bit instructions that one of a class takes."""

EQUAL = 0.02
"""Bounds that are nearer to each other, relative to the larger, have no order."""


class Bound(msgspec.Struct, frozen=True):
    """One launch: cycles by resource, and the resource that takes the most of them."""

    kernel: str
    cycles: dict[str, float]
    limit: str

    @property
    def units(self) -> float:
        """The launch itself, and the cycles of the resource that limits it."""
        return self.cycles["launch"] + self.cycles[self.limit]


class Comparison(msgspec.Struct, frozen=True):
    """Two forms of one work. `less`: "first", "second" or "neither"; `by`: the measure that decides."""

    device: str
    first: tuple[Bound, ...]
    second: tuple[Bound, ...]
    less: str
    by: str

    @property
    def units(self) -> tuple[float, float]:
        """Of both forms, all launches together."""
        return total_units(self.first), total_units(self.second)


def total_units(bounds: Sequence[Bound]) -> float:
    """Launches come one after the other."""
    return sum(bound.units for bound in bounds)


def bound(counts: Counts, device: DeviceClass = H200) -> Bound:
    """The resources that a launch asks for, in cycles of the device.

    Cores work as long as the one that has most threadgroups. Device memory moves what is touched at all, once; the last
    cache gives the sectors of every request.
    """
    cores = _working(max(counts.threadgroups, 1), device.cores)
    traffic, atomics = counts.traffic, counts.atomics.values()
    sectors = traffic.sectors + sum(a.sectors for a in atomics)
    shared = [side["threadgroup"] for side in (counts.reads, counts.writes) if "threadgroup" in side]
    turns = traffic.lines + sum(t.cycles for t in shared) + sum(a.serial for a in atomics)
    steps = {kind: o.requests * _steps(kind) for kind, o in counts.simd.items() if _steps(kind)}
    moving = sum(o.requests for kind, o in counts.simd.items() if kind not in steps and kind != _MATRIX)
    matrices = counts.simd[_MATRIX].requests * _PRODUCTS if _MATRIX in counts.simd else 0
    issued = _issued(counts, device)

    def of(*kinds: str) -> int:
        return sum(issued.get(kind, 0) for kind in kinds)

    each = {
        "requests": turns / device.memory_requests + (sum(steps.values()) + moving) / device.shuffles,
        "issue": (sum(issued.values()) + counts.issued - _alone(counts) + sum(steps.values())) / device.issued,
        "float": (of("float", "fma", "division") + matrices) / device.float_,
        "half": of("half") / device.half,
        "integer": of("integer", "long", "address", "select", "comparison", "byte_sum") / device.integer,
        "product": of("product") / device.product,
        "conversion": of("conversion") / device.conversion,
        "transcendental": of("transcendental") / device.transcendental,
    }
    cycles = {
        "launch": device.launch,
        "device memory": traffic.footprint_sectors * SECTOR / device.memory_bytes,
        "cache": sectors * SECTOR / (device.cache_bytes * cores / device.cores),
        **{name: value / cores for name, value in each.items()},
    }
    limit = max((name for name in cycles if name != "launch"), key=lambda name: cycles[name])
    return Bound(counts.kernel, cycles, limit)


def _working(threadgroups: int, cores: int) -> float:
    """How many cores, all of them busy, would end when the one does that has the most threadgroups."""
    return threadgroups / -(-threadgroups // cores)


def _steps(kind: str) -> int:
    """Of an operation that joins what lanes have; 0 for others."""
    if kind in _JOINING:
        return _STEPS
    return _QUAD_STEPS if kind.removeprefix("quad_") in _JOINING else 0


def _issued(counts: Counts, device: DeviceClass) -> dict[str, int]:
    """Instructions by class, as many as one of it takes on the device."""
    weights = {**_WEIGHTS, "byte_sum": device.byte_sum}
    return {kind: weights.get(kind, 1) * a.issued for kind, a in counts.arithmetic.items()}


def _alone(counts: Counts) -> int:
    """Instructions of arithmetic as they are counted."""
    return sum(a.issued for a in counts.arithmetic.values())


def compare(first: Sequence[Counts], second: Sequence[Counts], device: DeviceClass = H200) -> Comparison:
    """Which of two forms of one work does less on a device class, and by which measure.

    Forms are within `EQUAL` of each other: neither. `by` is the resource that limits the form that does more, in the
    launch in which it asks most of it; "launch" where more launches make more than half of the difference.
    """
    one, other = (tuple(bound(c, device) for c in form) for form in (first, second))
    units = total_units(one), total_units(other)
    if abs(units[0] - units[1]) <= EQUAL * max(units):
        return Comparison(device.name, one, other, "neither", "")
    less = "first" if units[0] < units[1] else "second"
    more, fewer = (other, one) if less == "first" else (one, other)
    launches = (len(more) - len(fewer)) * device.launch
    largest = max(more, key=lambda each: each.units)
    by = "launch" if launches > abs(units[0] - units[1]) / 2 else largest.limit
    return Comparison(device.name, one, other, less, by)
