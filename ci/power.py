"""Tells which cases an answer without work would pass: `python ci/power.py --seeds 1 2 3`. No kernel is asked.

A run says so of each of its own cases; this asks for the seeds of runs to come.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from mlx_assay.conformance.contract import contracts, seen
from mlx_assay.conformance.judging.panel import Panel
from mlx_assay.conformance.judging.power import powerless_twin
from mlx_assay.conformance.selection import select
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.kind import kind_of
from mlx_assay.oracles.registry import load

HOST = {"simd_sum": "ascending-butterfly", "f32_denormals": "flushed"}


@cache
def primary(operation: str) -> Panel:
    """The first oracle of a contract alone: a twin that it turns down passes in no run."""
    contract = contracts()[operation]
    return Panel(replace(contract, references=contract.references[:1]), load, contract.relaxations)


def powerless(case: Case) -> str | None:
    """The answer without work that would pass every call of a case, or None: mostly the first two calls tell."""
    subcases = kind_of(case).subcases(case)
    return _twin(case, subcases[:2]) and _twin(case, subcases)


def _twin(case: Case, subcases: Sequence[Subcase]) -> str | None:
    panel = primary(case.operation)
    expected = [[] if subcase.raises else panel.expect(seen(subcase, HOST)) for subcase in subcases]
    return powerless_twin(subcases, expected, contracts()[case.operation].relaxations)


def main() -> int:
    """Prints a line a case without power; 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python ci/power.py", description=__doc__)
    parser.add_argument("queries", nargs="*", metavar="QUERY", help="which cases (default: all of the tier)")
    parser.add_argument("--tier", choices=("quick", "full"), default="full", help="(default: full)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="N", help="that draw them (default: 0)")
    arguments = parser.parse_args()
    done: set[Case] = set()
    found = 0
    for seed in arguments.seeds:
        for case in select(arguments.queries, arguments.tier, seed).cases:
            if case not in done and (twin := powerless(case)):
                found += 1
                print(f"{case.id}: {twin} would conform to all of it", flush=True)
            done.add(case)
    print(f"{len(done):,} cases, {found} without power")
    return 1 if found or not done else 0


if __name__ == "__main__":
    sys.exit(main())
