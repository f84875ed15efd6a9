"""The comparison of two reports, case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mlx_assay.conformance.differing.document import (
    KINDS,
    SCHEMA,
    Change,
    Difference,
    Kind,
    Outcome,
    Part,
    Seen,
    Side,
    grave,
)
from mlx_assay.conformance.differing.outputs import Told, told
from mlx_assay.conformance.differing.settings import settings
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.report import Report, outcome
from mlx_assay.conformance.verdict import FAULTS

UNTOLD = Told("unknown", "unknown")
NOTES = 20
"""Notes that are kept; more say the same."""


class Given(NamedTuple):
    """A report and the file that it was read from."""

    path: Path
    report: Report


class Unsound(ValueError):
    """A report that contradicts itself: a case stands twice, or conforms by a verdict that is no agreement."""


def compare(old: Given, new: Given) -> Difference:
    """Holds a new report against an old one. Unsound: one contradicts itself."""
    before, after = _by_id(old), _by_id(new)
    changes: list[Change] = []
    notes: list[str] = []
    agreeing: Counter[bool] = Counter()
    same_bits = 0
    for case_id in dict.fromkeys([*after, *before]):
        change, known = _change(before.get(case_id), after.get(case_id), old.path.parent, new.path.parent)
        if known.note and len(notes) < NOTES:
            notes.append(known.note)
        if change is None:
            agreeing[after[case_id].conforms] += 1
            same_bits += known.got == "same"
        else:
            changes.append(change)
    if old.report.run and old.report.run == new.report.run:
        notes.insert(0, "another run: both reports are of the same one")
    changes.sort(key=lambda change: KINDS.index(change.kind))
    counts = Counter(change.kind for change in changes)
    sides = _side(old), _side(new)
    reasons = _reasons(*sides, counts)
    return Difference(
        schema=SCHEMA,
        verdict=_verdict(changes, reasons),
        old=sides[0],
        new=sides[1],
        settings=settings(old.report, new.report),
        counts={kind: counts[kind] for kind in KINDS},
        conforming=agreeing[True],
        failing=agreeing[False],
        same_bits=same_bits,
        changes=changes,
        reasons=reasons,
        notes=notes,
    )


def _by_id(given: Given) -> Mapping[str, Record]:
    found = {record.id: record for record in given.report.cases}
    if len(found) < len(given.report.cases):
        counts = Counter(record.id for record in given.report.cases)
        twice = next(case_id for case_id, count in counts.items() if count > 1)
        raise Unsound(f"{given.path}: expected each case once but {twice!r} stands {counts[twice]} times")
    strange = [record.id for record in found.values() if record.conforms and record.verdict in FAULTS]
    if strange:
        told = f"{strange[0]!r} is {found[strange[0]].verdict} and conforms"
        raise Unsound(f"{given.path}: expected conforming cases to agree but {told}, and {len(strange) - 1} more")
    return found


def _change(old: Record | None, new: Record | None, old_folder: Path, new_folder: Path) -> tuple[Change | None, Told]:
    """What changed of one case, or None; and what is known of its outputs, where it fails in both."""
    record = new or old
    assert record is not None
    kind = _kind(old, new)
    if kind != "still-failing":
        parts: list[Part] = ["verdict"] if old and new else []
        return (_made(kind, record, old, new, parts) if kind else None), UNTOLD
    assert old is not None
    assert new is not None
    known = told(old, new, old_folder, new_folder)
    if parts := _parts(old, new, known):
        return _made(kind, record, old, new, parts, known), known
    return None, known


def _kind(old: Record | None, new: Record | None) -> Kind | None:
    if new is None:
        return "gone"
    if not new.conforms:
        return "still-failing" if old is not None and not old.conforms else "newly-failing"
    if old is None:
        return "new"
    if not old.conforms:
        return "newly-passing"
    return "other-rung" if old.verdict is not new.verdict else None


def _parts(old: Record, new: Record, known: Told) -> list[Part]:
    """What differs of a case that fails in both."""
    found: list[Part] = []
    if old.verdict is not new.verdict:
        found.append("verdict")
    if known.got == "other":
        found.append("bits")
    if known.want == "other":
        found.append("expected")
    if _diagnoses(old) != _diagnoses(new):
        found.append("diagnosis")
    if old.difference is None and new.difference is None and _first_line(old) != _first_line(new):
        found.append("message")
    return found


def _made(
    kind: Kind, record: Record, old: Record | None, new: Record | None, parts: list[Part], known: Told | None = None
) -> Change:
    return Change(
        kind=kind,
        id=record.id,
        operation=record.operation,
        dtype=record.dtype,
        why=record.why,
        old=_seen(old),
        new=_seen(new),
        parts=parts,
        bits=known.got if known else "unknown",
    )


def _seen(record: Record | None) -> Seen | None:
    if record is None:
        return None
    difference = record.difference
    seen = Seen(verdict=record.verdict, conforms=record.conforms, message=record.message, replay=record.replay)
    if difference is None:
        return seen
    return Seen(
        verdict=record.verdict,
        conforms=record.conforms,
        message=record.message,
        subcase=difference.subcase,
        oracle=difference.oracle,
        count=difference.count,
        total=difference.total,
        worst_ulp=difference.worst_ulp,
        places=difference.places,
        diagnoses=_diagnoses(record),
        replay=record.replay,
    )


def _diagnoses(record: Record) -> list[str]:
    pattern = record.difference.pattern if record.difference else None
    return [diagnosis.text for diagnosis in pattern.diagnoses] if pattern else []


def _first_line(record: Record) -> str:
    return record.message.partition("\n")[0]


def _side(given: Given) -> Side:
    report = given.report
    complete = report.complete and not report.altered
    return Side(
        path=str(given.path),
        run=report.run,
        leg=report.leg,
        started=report.started,
        implementation=report.implementation.name,
        executor=report.executor.name,
        device_class=report.environment.device_class,
        verdict=outcome(report.totals.declared, report.cases, complete),
        declared=report.totals.declared,
        cases=len(report.cases),
        failing=sum(not record.conforms for record in report.cases),
    )


def _reasons(old: Side, new: Side, counts: Mapping[Kind, int]) -> list[str]:
    reasons = [
        f"{which} is incomplete: {side.cases} of {side.declared} cases in it"
        + (", some without a verdict, or it was cut short" if side.cases == side.declared else "")
        for which, side in (("OLD", old), ("NEW", new))
        if side.verdict == "incomplete"
    ]
    if gone := counts.get("gone", 0):
        reasons.append(f"{gone} {'case is' if gone == 1 else 'cases are'} gone")
    return reasons


def _verdict(changes: list[Change], reasons: list[str]) -> Outcome:
    if reasons:
        return "incomplete"
    return "worse" if any(grave(change) for change in changes) else "no-worse"
