"""Regeneration of goldens: today's answers, written beside the recorded ones for review."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from mlx_assay.conformance.query import Query, QueryError
from mlx_assay.conformance.regeneration.answers import Answered, answered, release
from mlx_assay.conformance.regeneration.drift import Drift, drifts, said
from mlx_assay.conformance.regeneration.holding import Held, told
from mlx_assay.conformance.regeneration.machine import Absent, device, key, today, toolchain
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.goldens import store
from mlx_assay.fixtures.goldens.catalogue import groups
from mlx_assay.fixtures.goldens.document import Document
from mlx_assay.fixtures.goldens.group import Group, Member
from mlx_assay.fixtures.goldens.store import FOLDER, Damage, Recording

Say = Callable[[str], object]
REAL = "real"
"""The query that means the recorded real input."""


def chosen(queries: Sequence[str]) -> dict[str, list[Member] | None]:
    """The groups that any query means, by name glob or by its cases; None stands for all cases of a group.

    QueryError where a query means nothing.
    """
    found: dict[str, list[Member] | None] = {}
    for query in queries:
        named = [name for name in groups() if fnmatchcase(name, query)]
        found.update(dict.fromkeys(named))
        hits = {} if named else _by_cases(query)
        found.update(hits)
        if not named and not hits:
            raise QueryError(
                f"Expected a group of goldens, {', '.join(groups())}, {REAL!r}, or a query of their cases but got "
                f"{query!r}"
            )
    return found or dict.fromkeys(groups())


def _by_cases(text: str) -> dict[str, list[Member] | None]:
    query = Query.parse(text)
    found: dict[str, list[Member] | None] = {}
    for name, group in groups().items():
        if members := [m for m in group.members() if m.id == text or query.matches(Case.parse(m.id), m.flags)]:
            found[name] = members
    return found


def regenerate(group: Group, members: list[Member] | None, root: Path = FOLDER) -> Held:
    """Computes a group again, or some of its cases, and writes `.new` files beside it where anything changed.

    Nothing is written where a digest changed that no version accounts for, or where the recording is damaged.
    """
    try:
        mine = key(group)
        recording = store.recorded(root, group.name, mine)
        fresh = answered(group, group.members() if members is None else members)
        found = drifts(group, recording, fresh, whole=members is None)
        lines = [line for drift in found for line in told(group, drift)]
        if any(not drift.accounted for drift in found):
            return Held(group.name, "fault", ("refused, nothing is written", *lines), len(fresh))
        if not found:
            store.discard(root, group.name, mine)
            return Held(group.name, "holds", ("unchanged",), len(fresh))
        path = _write(group, mine, recording, fresh, found, root)
    except Absent as error:
        return Held(group.name, "incomplete", (str(error),))
    except (Damage, RuntimeError) as error:
        return Held(group.name, "fault", (f"nothing is written: {error}",))
    counts = {cause: sum(drift.cause == cause for drift in found) for cause in ("added", "removed")}
    changed = len(found) - sum(counts.values())
    line = f"{path}: {counts['added']} added, {counts['removed']} removed, {changed} changed: review it"
    return Held(group.name, "waits", (line,), len(fresh))


def _write(
    group: Group,
    mine: Mapping[str, str],
    recording: Recording | None,
    fresh: Mapping[str, Answered],
    found: Sequence[Drift],
    root: Path,
) -> Path:
    removed = {drift.case for drift in found if drift.cause == "removed"}
    old = recording.document.cases if recording else []
    kept = store.without(old, [*fresh, *removed])
    tensors = {
        name: array
        for entry in kept
        for name, array in (recording.tensors if recording else {}).items()
        if name.startswith(f"{entry.id}#")
    }
    for answer in fresh.values():
        tensors |= answer.tensors
    document = Document(
        group=group.name,
        key=dict(mine),
        device=device(group),
        release=release(group),
        toolchain=toolchain(),
        recorded=today(),
        file="",
        cases=[*kept, *(answer.entry for answer in fresh.values())],
        **said(group),  # type: ignore[arg-type]
    )
    return store.write(root, document, tensors, pending=True)
