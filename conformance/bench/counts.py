"""What launches do, as counted on the host executor: measures by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlx_assay.conformance.bench.report import Form
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.rendering.prose import prose
from mlx_assay.impl.executors.counting import Counts, total

OF_LEAST = "of the bytes that must move"
TOUCHED = "bytes of device memory touched, each once"
SHARES = ("active lanes", "useful of moved bytes", OF_LEAST)
"""Measures that are shares; all others are numbers."""


def form(name: str, launches: Sequence[Counts], least: int) -> Form:
    """All launches of one call together; of none, no measures. `least` are the bytes that a call must move."""
    if not launches:
        return Form(name=name, launches=0, measures={})
    return Form(name=name, launches=len(launches), measures=dict(_measures(total(launches), least)))


def _measures(counts: Counts, least: int) -> Iterator[tuple[str, float]]:
    yield "threadgroups", counts.threadgroups
    for space in ("device", "constant", "threadgroup"):
        for verb, side in (("read from", counts.reads), ("written to", counts.writes)):
            if space in side:
                yield f"bytes {verb} {space} memory", side[space].bytes
    moved = counts.traffic
    yield TOUCHED, moved.footprint
    yield "bytes moved in sectors of 32", moved.moved
    yield OF_LEAST, moved.moved / least
    yield "requests to device memory", moved.requests
    if moved.coalesced is not None:
        yield "useful of moved bytes", moved.coalesced
    conflicts = sum(side["threadgroup"].conflicts for side in (counts.reads, counts.writes) if "threadgroup" in side)
    yield "bank conflicts, in cycles", conflicts
    yield "threadgroup barriers", counts.barriers.threadgroup
    yield "simdgroup barriers", counts.barriers.simdgroup
    yield "simdgroup operations", sum(each.requests for each in counts.simd.values())
    yield "atomics", sum(each.lanes for each in counts.atomics.values())
    if counts.active is not None:
        yield "active lanes", counts.active
    yield "instructions issued", counts.issued
    for kind, each in counts.arithmetic.items():
        yield f"of them {kind}", each.issued
    yield "bytes of threadgroup memory", counts.threadgroup_bytes


def uncounted(form: Form, least: int) -> str:
    """Why counts are not those of the whole work, which `least` bytes must move for; empty where they may be."""
    if not form.launches:
        return "it launches no kernel on the executor, and MLX's own operations are not counted"
    share = form.measures[TOUCHED] / least
    if share >= 1:
        return ""
    return f"{share:.1%} {OF_LEAST}: the rest is done where nothing is counted, or not at all"


def told(forms: Sequence[Form], least: int) -> Iterator[str]:
    """A line for each measure of one form, or of two side by side."""
    yield "    " + "; ".join(f"{form.name}: {counted(form.launches, 'launch', 'launches')}" for form in forms)
    names = _names(forms)
    width = max((len(name) for name in names), default=0)
    for name in names:
        values = [_value(name, form) for form in forms]
        yield f"    {name:<{width}}  {'  '.join(f'{value:>16}' for value in values)}{_said(name, forms, least)}"
    for form in forms:
        if not form.launches:
            yield f"    {form.name}: {uncounted(form, least)}"


def _said(name: str, forms: Sequence[Form], least: int) -> str:
    """On the line of the share of the bytes that must move: of which form it cannot be the whole work."""
    if name != OF_LEAST:
        return ""
    return "".join(f"  {form.name}: {why}" for form in forms if form.launches and (why := uncounted(form, least)))


def table(forms: Sequence[Form]) -> Iterator[str]:
    """The same in Markdown."""
    yield f"| one call | {' | '.join(prose(form.name) for form in forms)} |"
    yield f"|---|{'---:|' * len(forms)}"
    yield f"| launches | {' | '.join(str(form.launches) for form in forms)} |"
    for name in _names(forms):
        yield f"| {prose(name)} | {' | '.join(_value(name, form) for form in forms)} |"


def _names(forms: Sequence[Form]) -> list[str]:
    """Those of all forms, each behind the one that it follows in its own."""
    names: list[str] = []
    for form in forms:
        place = 0
        for name in form.measures:
            if name not in names:
                names.insert(place, name)
            place = names.index(name) + 1
    return names


def _value(name: str, form: Form) -> str:
    """What did not occur is 0; a share of nothing, or a measure of no launch, is none."""
    value = form.measures.get(name, None if name in SHARES or not form.launches else 0)
    if value is None:
        return "-"
    return f"{value:.1%}" if name in SHARES else f"{value:,.0f}"
