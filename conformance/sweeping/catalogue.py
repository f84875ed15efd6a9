"""The catalogue: every sweep of this package's modules, and the choice among them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache

from mlx_assay.conformance import sweeping
from mlx_assay.conformance.query import Query, nearest
from mlx_assay.conformance.selection import NothingSelected
from mlx_assay.conformance.sweeping import softcap
from mlx_assay.conformance.sweeping.sweep import Sweep


@cache
def sweeps() -> Mapping[str, Sweep]:
    """Every sweep by its id; a module has some where it has a list SWEEPS. ValueError: one stands twice."""
    found: dict[str, Sweep] = {}
    for module in pkgutil.iter_modules(sweeping.__path__, f"{sweeping.__name__}."):
        for sweep in getattr(importlib.import_module(module.name), "SWEEPS", ()):
            if sweep.id in found:
                raise ValueError(f"Expected each sweep once but {sweep.id} stands twice")
            found[sweep.id] = sweep
    return dict(sorted(found.items()))


def sweep_of(text: str) -> Sweep:
    """The sweep of a whole id; those of float32 softcaps exist for every cap. KeyError: there is none."""
    if text in sweeps():
        return sweeps()[text]
    case = Query.parse(text).exact
    found = softcap.named(case) if case else None
    if found is None or found.id != text:
        raise KeyError(text)
    return found


def chosen(queries: Sequence[str]) -> list[Sweep]:
    """The sweeps that any of the queries means, all without one. QueryError, NothingSelected: as for cases."""
    found: dict[str, Sweep] = {}
    for text in queries:
        matched = _matched(text)
        if not matched:
            near = nearest(text, sweeps())
            hint = f"; the nearest are {', '.join(near)}" if near else ""
            raise NothingSelected(f"Query {text!r} matches no sweep{hint}: mlx-assay sweep --list shows all")
        found.update({sweep.id: sweep for sweep in matched})
    return list(found.values()) if queries else list(sweeps().values())


def _matched(text: str) -> list[Sweep]:
    query, known = Query.parse(text), sweeps().values()
    query.check(sorted({one.case.operation for one in known}), sorted({one.case.dtype for one in known}))
    matched = [one for one in known if query.matches(one.case)]
    if matched:
        return matched
    try:
        return [sweep_of(text)]
    except KeyError:
        return []
