"""The quick tier: the least of the cases that kinds list for it which keeps every kill and every purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from mlx_assay.conformance.mutation.killers import all_checked, all_killers
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.report import Campaign
from mlx_assay.conformance.mutation.ruling import CHECKER, COMPILATION, KILLED
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import Kind, kind_of, kinds, spelled

WHOLE = frozenset({"real", "found", "error", "exhaustive"})
"""Tags of kinds of which each case stays: recorded inputs, finds, refusals, and ranges that are asked for whole."""

EACH_DTYPE = frozenset({"public-bug", "strided"})
"""Tags of kinds that keep each value of a parameter in each dtype: what they hunt depends on an element's width."""

Purpose = tuple[Hashable, ...]
"""What a case is kept for; its first word says of which sort, one of SORTS."""

SORTS = {
    "kill": "a mutant that no other case of the tier kills",
    "checker": "under the checker, where no case kills",
    "first": "tried first on the mutants of a text",
    "case": "recorded input, a find, a refusal or a whole range",
    "kind": "a kind in a dtype",
    "value": "a value of a kind's parameter",
    "layout": "a layout or a public bug, at a value in a dtype",
}


class StaleError(ValueError):
    """Something names a case that no kind lists for the quick tier."""


def purposes(case: Case) -> set[Purpose]:
    """What a case is there for beside mutants, by its kind's tags and its parameters."""
    tags = set(kind_of(case).tags)
    found: set[Purpose] = {("kind", case.path)}
    if tags & WHOLE:
        found.add(("case", case.id))
    for name, value in case.parameters:
        found.add(("value", case.operation, case.kind, name, value))
        if tags & EACH_DTYPE:
            found.add(("layout", case.path, name, value))
    return found


def kills(reports: Sequence[Campaign]) -> dict[str, set[str]]:
    """Who killed each mutant that a case killed, over all reports: the first, and others that were tried."""
    found: dict[str, set[str]] = {}
    for report in reports:
        for row in report.mutants:
            if row.outcome == KILLED and not row.killed_by.startswith((f"{CHECKER}:", f"{COMPILATION}:")):
                found.setdefault(row.id, set()).update((row.killed_by, *row.also))
    return found


def unruled(reports: Sequence[Campaign]) -> list[str]:
    """Mutants of the kernels as they are that no report has ruled on."""
    ruled = {row.id for report in reports for row in report.mutants}
    return [name for name in all_mutants() if name not in ruled]


def asked(killed: Mapping[str, Iterable[str]], listed: Mapping[str, Case]) -> dict[str, set[Purpose]]:
    """By case id all that it is kept for. StaleError: a mutant that no listed case killed."""
    wanted = {name: purposes(case) for name, case in listed.items()}
    for mutant, cases in killed.items():
        known = [name for name in cases if name in wanted]
        if not known:
            raise StaleError(f"Expected a case that kinds list but {mutant} was killed by {', '.join(cases)} alone")
        for name in known:
            wanted[name].add(("kill", mutant))
    for name in all_checked():
        _named(wanted, name, "checker").add(("checker", name))
    for name in all_killers():
        _named(wanted, name, "order of killers").add(("first", name))
    return wanted


def _named(wanted: Mapping[str, set[Purpose]], name: str, where: str) -> set[Purpose]:
    if name not in wanted:
        raise StaleError(f"Expected a case that kinds list but the {where} names {name}: run a campaign with --learn")
    return wanted[name]


def smallest(wanted: Mapping[str, set[Purpose]], cost: Callable[[str], int]) -> list[str]:
    """Cases that serve every purpose, in the order of `wanted`: by most new purposes a microsecond, then thinned out.

    A case that serves nothing which no other kept one does is left out again, the dearest first.
    """
    left = set().union(*wanted.values())
    prices = {name: max(cost(name), 1) for name in wanted}
    kept: dict[str, None] = {}
    for name, only in _only(wanted).items():
        kept[name] = None
        left -= only
    while left:
        best = max(
            (name for name in wanted if name not in kept), key=lambda name: len(wanted[name] & left) / prices[name]
        )
        kept[best] = None
        left -= wanted[best]
    served = Counter(purpose for name in kept for purpose in wanted[name])
    for name in sorted(kept, key=lambda name: -prices[name]):
        if all(served[purpose] > 1 for purpose in wanted[name]):
            del kept[name]
            served.subtract(wanted[name])
    return [name for name in wanted if name in kept]


def _only(wanted: Mapping[str, set[Purpose]]) -> dict[str, set[Purpose]]:
    """Cases that alone serve some purpose, with all that they serve."""
    count = Counter(purpose for serves in wanted.values() for purpose in serves)
    return {name: serves for name, serves in wanted.items() if any(count[purpose] == 1 for purpose in serves)}


def listed(operation: str | None = None) -> dict[str, Case]:
    """The cases that kinds list for the quick tier, by id."""
    chosen: list[Kind] = [kind for _, kind in sorted(kinds().items()) if operation in (None, kind.operation)]
    return {case.id: case for kind in chosen for case in kind.listed()}


def later(kept: Iterable[str], cases: Mapping[str, Case]) -> dict[str, list[str]]:
    """What the file holds where these are kept: by path the parameter sets of the others."""
    stays: set[str] = set(kept)
    moved: dict[str, list[str]] = {}
    for kind in kinds().values():
        for dtype in kind.dtypes:
            for chosen in kind.quick:
                seed = {"seed": int(chosen.get("seed", 0))} if kind.seeded else {}
                case = Case.make(kind.operation, dtype, kind.name, {**chosen, **seed})
                if case.id in cases and case.id not in stays:
                    moved.setdefault(case.path, []).append(spelled(chosen))
    return {path: sorted(set(sets)) for path, sets in sorted(moved.items())}


def unserved(kept: Iterable[Case], cases: Iterable[Case]) -> list[Purpose]:
    """Purposes of all cases that none of those that are kept serves."""
    served = set().union(*(purposes(case) for case in kept))
    return sorted(set().union(*(purposes(case) for case in cases)) - served, key=str)


def stale(file: Mapping[str, Iterable[str]]) -> list[str]:
    """Entries of the file that name no parameter set which a kind lists."""
    known = {
        f"{kind.operation}/{dtype}/{kind.name}": {spelled(chosen) for chosen in kind.quick}
        for kind in kinds().values()
        for dtype in kind.dtypes
    }
    return [f"{path}?{text}" for path, sets in file.items() for text in sets if text not in known.get(path, set())]
