"""The verb `list`: the selected cases by id, or the registered implementations by name; as lines or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from mlx_assay.conformance.adapters import target
from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.selection import select
from mlx_assay.conformance.verbs.refusal import refusing
from mlx_assay.fixtures.kind import Tier, kind_of


class Listed(msgspec.Struct, frozen=True):
    """A case as `list --json` shows it."""

    id: str
    operation: str
    dtype: str
    tags: list[str]
    why: str


def show(queries: Sequence[str], tier: Tier, seed: int, as_json: bool) -> int:
    """Prints to stdout; the count goes to stderr, out of a pipe's way."""
    with refusing():
        cases = select(queries, tier, seed).cases
    if as_json:
        listed = [
            Listed(case.id, case.operation, case.dtype, list(kind_of(case).tags), kind_of(case).why) for case in cases
        ]
        _print_json(listed)
    else:
        print("\n".join(case.id for case in cases))
    sys.stdout.flush()
    print(counted(len(cases), "case"), file=sys.stderr)
    return 0


class Registered(msgspec.Struct, frozen=True):
    """An entry point as `list --implementations --json` shows it; `alone`: no other one has its name."""

    name: str
    target: str
    distribution: str
    alone: bool


def show_implementations(as_json: bool) -> int:
    """Prints the entry points of the group, without importing what they name; the count goes to stderr."""
    points = target.installed()
    names = [point.name for point in points]
    listed = [
        Registered(point.name, point.value, target.owner(point), names.count(point.name) == 1) for point in points
    ]
    if as_json:
        _print_json(listed)
    for one in () if as_json else listed:
        doubt = "" if one.alone else "; the name stands twice: give the target instead"
        print(printable(f"{one.name}: {one.target} ({one.distribution}{doubt})"))
    sys.stdout.flush()
    print(f"{counted(len(listed), 'implementation')} in the entry-point group {target.GROUP}", file=sys.stderr)
    return 0


def _print_json(listed: Sequence[msgspec.Struct]) -> None:
    print(msgspec.json.format(msgspec.json.encode(listed), indent=2).decode())
