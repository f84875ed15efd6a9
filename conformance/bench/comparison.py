"""Which of two forms does less on a modelled device, as fields and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlx_assay.conformance.bench.report import FIRST, NEITHER, SECOND, Compared, Demand
from mlx_assay.conformance.counting import counted
from mlx_assay.impl.executors.counting import H200, Bound, Comparison, Counts, compare
from mlx_assay.impl.executors.counting.comparison import total_units
from mlx_assay.impl.executors.counting.devices import DeviceClass


def compared(
    one: Sequence[Counts], other: Sequence[Counts], names: tuple[str, str], device: DeviceClass = H200
) -> Compared:
    """An order of modelled bounds; no time."""
    found: Comparison = compare(one, other, device)
    first, second = (
        _demand(name, bounds, max(each.threadgroups for each in launches))
        for name, bounds, launches in zip(names, (found.first, found.second), (one, other), strict=True)
    )
    less = next(each for each in (FIRST, SECOND, NEITHER) if each == found.less)
    return Compared(device=found.device, cores=device.cores, less=less, by=found.by, first=first, second=second)


def _demand(name: str, bounds: Sequence[Bound], threadgroups: int) -> Demand:
    largest = max(bounds, key=lambda each: each.cycles[each.limit])
    return Demand(
        name=name,
        units=total_units(bounds),
        launches=len(bounds),
        launching=sum(each.cycles["launch"] for each in bounds),
        limit=largest.limit,
        threadgroups=threadgroups,
    )


def told(found: Compared) -> Iterator[str]:
    """Who does less and by which measure, whose units, and what of the device is not filled."""
    less = {FIRST: found.first.name, SECOND: found.second.name}.get(found.less)
    verdict = f"{less} does less on {found.device}, by {found.by}" if less else f"neither does less on {found.device}"
    yield f"{verdict}, modelled alone: units are its cycles, no time"
    sides = (found.first, found.second)
    yield from map(_asked, sides)
    for side in sides:
        if side.threadgroups < found.cores:
            yield (
                f"{side.name} has {counted(side.threadgroups, 'threadgroup')} for {found.cores} cores: this shape does "
                "not fill the device, and the order may be another at a larger one (--shape)"
            )


def _asked(side: Demand) -> str:
    """The units of a form: the launches' constant, and what limits the launch that asks most."""
    launches = counted(side.launches, "launch", "launches")
    if not side.launching:
        return f"{side.name} {side.units:,.0f} units in {launches}, for its limit, {side.limit}"
    return (
        f"{side.name} {side.units:,.0f} units, {side.launching:,.0f} of them for {launches} whatever is done and "
        f"{side.units - side.launching:,.0f} for its limit, {side.limit}"
    )
