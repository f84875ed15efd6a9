"""The verb `list`: the selected cases, by id or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

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
        print(msgspec.json.format(msgspec.json.encode(listed), indent=2).decode())
    else:
        print("\n".join(case.id for case in cases))
    sys.stdout.flush()
    print(f"{len(cases)} cases", file=sys.stderr)
    return 0
