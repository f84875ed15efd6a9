"""The settings of two runs, field by field: what judged, what was judged, where, and what was asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from mlx_assay.conformance.differing.document import Setting
from mlx_assay.conformance.reporting.report import Report

COMPARED = ("leg", "shard", "suite", "source", "implementation", "executor", "environment", "selection")
"""Fields of a report that tell of its setting; run, times and counts differ in any two."""


def settings(old: Report, new: Report) -> list[Setting]:
    """The fields that differ, by dotted name, in the order of the report."""
    before, after = dict(_fields(old)), dict(_fields(new))
    names = dict.fromkeys([*before, *after])
    order = {name: place for place, name in enumerate(COMPARED)}
    differing = [name for name in names if before.get(name) != after.get(name)]
    differing.sort(key=lambda name: order[name.partition(".")[0]])
    return [Setting(name, before.get(name), after.get(name)) for name in differing]


def _fields(report: Report) -> Iterator[tuple[str, str]]:
    for name in COMPARED:
        yield from _flat(name, msgspec.to_builtins(getattr(report, name)))


def _flat(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}.{key}", inner)
    elif isinstance(value, list):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value).lower() if isinstance(value, bool) else str(value)
