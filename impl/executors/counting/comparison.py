"""Which of two forms of one work does less: each launch is bound by the resource that it asks most of.

The result is in units, cycles of a device that is never kept waiting by anything else. It is a lower bound of a kind
and an order between forms; it is no time.
"""

from collections.abc import Sequence

import msgspec

from mlx_assay.impl.executors.counting.counts import SECTOR, Counts
from mlx_assay.impl.executors.counting.devices import H200, DeviceClass

_STEPS = 5
"""Of a reduction or a scan over 32 lanes: each a shuffle and an operation."""

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

    Only as many cores work as there are threadgroups. Device memory moves what is touched at all, once; the last cache
    gives the sectors of every request.
    """
    cores = min(device.cores, max(counts.threadgroups, 1))
    arithmetic = {kind: _WEIGHTS.get(kind, 1) * a.issued for kind, a in counts.arithmetic.items()}
    traffic = counts.traffic
    atomics = counts.atomics.values()
    footprint = traffic.footprint_sectors * SECTOR
    sectors = traffic.sectors + sum(a.sectors for a in atomics)
    shared = [side["threadgroup"] for side in (counts.reads, counts.writes) if "threadgroup" in side]
    turns = traffic.lines + sum(t.cycles for t in shared) + sum(a.serial for a in atomics)
    shuffles = sum(o.requests * _shuffles(kind) for kind, o in counts.simd.items())
    joined = sum(o.requests * (_shuffles(kind) if _shuffles(kind) > 1 else 0) for kind, o in counts.simd.items())
    integers = ("integer", "long", "address", "select", "comparison")
    cycles = {
        "launch": device.launch,
        "device memory": footprint / device.memory_bytes,
        "cache": sectors * SECTOR / (device.cache_bytes * cores / device.cores),
        "requests": (turns / device.memory_requests + shuffles / device.shuffles) / cores,
        "issue": (counts.issued + sum((w - 1) * _issued(counts, k) for k, w in _WEIGHTS.items()) + joined)
        / (device.issued * cores),
        "float": (arithmetic.get("float", 0) + arithmetic.get("fma", 0) + arithmetic.get("division", 0))
        / (device.float_ * cores),
        "half": arithmetic.get("half", 0) / (device.half * cores),
        "integer": (sum(arithmetic.get(kind, 0) for kind in integers)) / (device.integer * cores),
        "product": arithmetic.get("product", 0) / (device.product * cores),
        "conversion": arithmetic.get("conversion", 0) / (device.conversion * cores),
        "transcendental": arithmetic.get("transcendental", 0) / (device.transcendental * cores),
    }
    limit = max((name for name in cycles if name != "launch"), key=lambda name: cycles[name])
    return Bound(counts.kernel, cycles, limit)


def _issued(counts: Counts, kind: str) -> int:
    return counts.arithmetic[kind].issued if kind in counts.arithmetic else 0


def _shuffles(kind: str) -> int:
    """How many shuffles an operation across lanes takes."""
    name = kind.removeprefix("quad_")
    if name in ("sum", "product", "max", "min", "and", "or", "xor", "prefix_sum", "prefix_product"):
        return 2 if kind != name else _STEPS
    return 1


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
