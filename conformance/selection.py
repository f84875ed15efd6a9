"""The selection: which cases a run is about, from queries, tier, seed, and what the implementation has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mlx_assay.conformance.query import TAG, Query, QueryError, nearest
from mlx_assay.conformance.reporting.report import Shard
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import Kind, Tier, all_cases, kind_of, kinds
from mlx_assay.oracles.registry import NAMES


class NothingSelected(LookupError):
    """A query that matches no case: the run would say nothing."""


@dataclass(frozen=True)
class Selection:
    """Cases in the order of the registry, each once; `not_asked` are operations that the implementation lacks.

    `shard` tells of which run these cases are a part, None where they are all of it.
    """

    cases: tuple[Case, ...]
    not_asked: tuple[str, ...] = ()
    shard: Shard | None = None


def operations() -> list[str]:
    """Every operation that has cases, in alphabetical order."""
    return sorted({operation for operation, _ in kinds()})


def dtypes() -> list[str]:
    """Every dtype that has cases, in alphabetical order."""
    return sorted({dtype for kind in kinds().values() for dtype in kind.dtypes})


def tags_of(case: Case) -> tuple[str, ...]:
    """The tags of the kind that generates a case."""
    return kind_of(case).tags


def select(
    queries: Sequence[str], tier: Tier = "quick", seed: int = 0, implemented: Sequence[str] | None = None
) -> Selection:
    """The cases of a tier that any of the queries means; all of them without a query.

    A whole id is selected even if its tier does not hold it. With `implemented`, cases of other operations are left
    out. QueryError for what cannot be meant, NothingSelected if a query, or the whole selection, matches no case.
    """
    pool = {case.id: case for case in all_cases(tier, seed)}
    asked = _asked(queries, pool) if queries else pool
    wanted = sorted({case.operation for case in asked.values()})
    lacking = () if implemented is None else tuple(name for name in wanted if name not in implemented)
    chosen = tuple(case for case in asked.values() if case.operation not in lacking)
    if not chosen:
        raise NothingSelected(_nothing(lacking, implemented))
    return Selection(chosen, lacking)


def _asked(queries: Sequence[str], pool: Mapping[str, Case]) -> dict[str, Case]:
    parsed = [Query.parse(text) for text in queries]
    by_path = _by_path(pool)
    found: dict[str, Case] = {}
    for query in parsed:
        query.check(operations(), dtypes())
        matched = _matched(query, pool, by_path)
        if not matched and (single := complete(query)):
            matched = [single]
        if not matched:
            raise NothingSelected(_unmatched(query, pool))
        found.update((case.id, case) for case in matched)
    known = {case_id: case for case_id, case in pool.items() if case_id in found}
    return known | found


def _by_path(pool: Mapping[str, Case]) -> dict[str, list[Case]]:
    """Cases by path: there are some hundred of cases a path, so that globs are matched with few texts."""
    found: dict[str, list[Case]] = {}
    for case in pool.values():
        found.setdefault(case.path, []).append(case)
    return found


def _matched(query: Query, pool: Mapping[str, Case], by_path: Mapping[str, Sequence[Case]]) -> list[Case]:
    """What a query means: the case whose whole id it is, else all that it matches."""
    if query.filters and (single := pool.get(query.text)):
        return [single]
    return [
        case
        for path, there in by_path.items()
        if query.leads_to(path)
        for tags in [tags_of(there[0])]
        for case in there
        if query.admits(case, tags)
    ]


def complete(query: Query) -> Case | None:
    """The case that a query names in full, with every parameter that its kind needs; None if it does not."""
    case = query.exact
    if case is None or (case.operation, case.kind) not in kinds() or case.dtype not in kind_of(case).dtypes:
        return None
    keys = {key for key, _ in case.parameters}
    return case if keys in _shapes(kind_of(case)) else None


def _shapes(kind: Kind) -> list[set[str]]:
    """The sets of parameter names with which a kind is run."""
    return [{*parameters, *(["seed"] if kind.seeded else [])} for parameters in (*kind.quick, *kind.full)]


def check_oracles(names: Sequence[str]) -> None:
    """QueryError for a name that no oracle has."""
    known = [name.replace("_", "-") for name in NAMES]
    for name in names:
        if name not in known:
            raise QueryError(f"Expected an oracle, {', '.join(known)}, but got {name!r}")


def replayed(text: str) -> Case:
    """The case of a whole id; QueryError says what is unknown and what is near."""
    query = Query.parse(text)
    query.check(operations(), dtypes())
    case = query.exact
    if case is None:
        raise QueryError(f"Expected a whole case id 'operation/dtype/kind?key=value&...' but got {text!r}")
    names = [name for operation, name in kinds() if operation == case.operation]
    if case.kind not in names:
        hint = ", ".join(nearest(case.kind, names)) or ", ".join(sorted(names)) or "none"
        raise QueryError(f"Expected a kind of {case.operation} (the nearest: {hint}) but got {case.kind!r}")
    kind = kind_of(case)
    if case.dtype not in kind.dtypes:
        raise QueryError(f"Expected a dtype of {case.path!r}, {', '.join(kind.dtypes)}, but got {case.dtype!r}")
    if complete(query) is None:
        shapes = " or ".join(sorted({"&".join(f"{key}=..." for key in sorted(keys)) for keys in _shapes(kind)}))
        raise QueryError(f"Expected the parameters {shapes or '(none)'} after {case.path!r} but got {text!r}")
    return case


def _unmatched(query: Query, pool: Mapping[str, Case]) -> str:
    by_path = [case for case in pool.values() if query.leads_to(case.path)]
    if not by_path:
        near = nearest(query.path, {case.path for case in pool.values()})
        hint = f"; the nearest are {', '.join(near)}" if near else ""
    else:
        hint = "".join(_unknown_filter(key, value, by_path) for key, value in query.filters)
    return f"Query {query.text!r} matches no case of this tier and seed{hint}"


def _unknown_filter(key: str, value: str, cases: Sequence[Case]) -> str:
    """What cases of a path have in place of a filter that none of them passes; nothing if it is not to blame."""
    if key == TAG:
        known = {tag for case in cases for tag in tags_of(case)}
    else:
        known = {str(there) for case in cases for name, there in case.parameters if name == key}
    if any(fnmatchcase(name, value) for name in known):
        return ""
    if not known:
        names = sorted({name for case in cases for name, _ in case.parameters} | {TAG})
        return f"; there is no parameter {key!r}, expected {', '.join(names)}"
    return f"; {key} is {', '.join(nearest(value, known) or sorted(known)[:8])}, not {value!r}"


def _nothing(lacking: Sequence[str], implemented: Sequence[str] | None) -> str:
    if lacking:
        return (
            f"Nothing to run: the implementation has {', '.join(implemented or ()) or 'no operation'} "
            f"but the queries ask for {', '.join(lacking)}"
        )
    return "Nothing to run: there are no cases; expected modules with KINDS in mlx_assay.fixtures"
