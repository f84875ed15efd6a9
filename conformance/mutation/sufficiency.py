"""Which cases of the quick tier kill every mutant of a report, and which it needed none of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.mutation.report import Campaign
from mlx_assay.conformance.mutation.ruling import KILLED
from mlx_assay.conformance.splitting import expected
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import all_cases

SCHEMA = "mlx-assay-sufficient/1"


class Sufficient(msgspec.Struct, frozen=True, kw_only=True):
    """Of one operation: the cases that are enough for the score, and what they and the whole tier take.

    Each mutant that a case killed is killed by one of `cases`, the first that did. A smaller set may do as well. Kinds
    in `needless` have no case among them: they are there for faults that no operator makes, where the reports tell of
    all mutants of its kernels. They tell of `told` of `planted`.
    """

    operation: str
    mutants: int
    cases: list[str]
    seconds: float
    tier_cases: int
    tier_seconds: float
    needless: list[str]
    told: int
    planted: int


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept in a file; `complete` as the reports were."""

    schema: str = SCHEMA
    complete: bool
    operations: list[Sufficient]


def seconds(cases: Iterable[Case]) -> float:
    """What cases take by the durations that are shipped, each kind's average."""
    return round(sum(map(expected, cases)) / 1e6, 3)


def sufficient(reports: Sequence[Campaign]) -> Document:
    """From reports on the built-in kernels; operations without a case that killed are left out."""
    counts: dict[str, int] = {}
    for report in reports:
        for row in report.mutants:
            if row.outcome == KILLED:
                counts[row.killed_by] = counts.get(row.killed_by, 0) + 1
    groups: dict[str, list[Case]] = {}
    for case in all_cases("quick"):
        groups.setdefault(case.operation, []).append(case)
    told = {row.id for report in reports for row in report.mutants}
    found = [_of(operation, cases, counts, told) for operation, cases in groups.items()]
    return Document(complete=all(report.complete for report in reports), operations=[one for one in found if one.cases])


def _of(operation: str, cases: Sequence[Case], counts: dict[str, int], told: Collection[str]) -> Sufficient:
    kept = sorted((case for case in cases if case.id in counts), key=lambda case: (-counts[case.id], case.id))
    killing = {case.kind for case in kept}
    planted = [mutant.id for mutant in all_mutants().values() if operation in mutant.source.operations]
    return Sufficient(
        operation=operation,
        mutants=sum(counts[case.id] for case in kept),
        cases=[case.id for case in kept],
        seconds=seconds(kept),
        tier_cases=len(cases),
        tier_seconds=seconds(cases),
        needless=sorted({case.kind for case in cases} - killing),
        told=sum(mutant_id in told for mutant_id in planted),
        planted=len(planted),
    )


def lines(document: Document) -> list[str]:
    """As text: what is enough, beside the whole tier."""
    told = []
    for one in document.operations:
        every = "" if one.mutants == 1 else "all "
        told.append(
            f"{one.operation}: {len(one.cases)} of {one.tier_cases} cases ({one.seconds:g} of {one.tier_seconds:g} s) "
            f"kill {every}{counted(one.mutants, 'mutant')} that cases kill"
        )
        if one.told < one.planted:
            told.append(
                f"  the report tells of {one.told} of the {counted(one.planted, 'mutant')} of its kernels: the others "
                "may need what these did not"
            )
        told += [f"  no mutant needed {kind}" for kind in one.needless]
    if not document.complete:
        told.append("of a campaign that was not run to its end")
    return told


def write(document: Document, path: Path) -> None:
    """As JSON."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n")
