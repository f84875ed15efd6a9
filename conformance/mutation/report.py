"""The report of a campaign: what became of each mutant, the score, and why those that live may."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.mutation.ruling import (
    CHECKER,
    COMPILATION,
    EQUIVALENT,
    KILLED,
    SURVIVED,
    TEST,
    Ruling,
)

if TYPE_CHECKING:
    from mlx_assay.conformance.mutation.mutant import Mutant

SCHEMA = "mlx-assay-mutants/1"


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One mutant. `place` is file:line:column; `killed_by` a case id, or begins with checker: or compilation:.

    `also` are ids of other cases that kill it, where a campaign tried more than the first that does.
    """

    id: str
    operation: str
    operator: str
    place: str
    outcome: str
    killed_by: str
    also: tuple[str, ...] = ()


class Campaign(msgspec.Struct, frozen=True, kw_only=True):
    """A whole campaign; `score` is killed of those that are not equivalent, null where there are none.

    `ground` is a digest of what ruled, `tests` are those of the self-tests of each text: see resumption.py.
    `unlaunched` are operations of somebody's module of which no kernel was seen, so that no fault was planted there.
    """

    schema: str = SCHEMA
    mutants: list[Row]
    selected: int
    complete: bool
    score: float | None
    totals: dict[str, int]
    seconds: float
    workers: int
    sources: dict[str, str]
    reasons: dict[str, str] = {}
    diffs: dict[str, str] = {}
    ground: str = ""
    tests: dict[str, dict[str, str]] = {}
    unlaunched: list[str] = []


def campaign(
    mutants: Sequence[Mutant],
    rulings: Sequence[Ruling],
    *,
    complete: bool,
    seconds: float,
    workers: int,
    ground: str = "",
    tests: Mapping[str, Mapping[str, str]] | None = None,
    unlaunched: Sequence[str] = (),
) -> Campaign:
    """The report of rulings on mutants."""
    known = {mutant.id: mutant for mutant in mutants}
    rows = []
    for ruling in rulings:
        mutant = known[ruling.id]
        known_by = (mutant.id, mutant.operation, mutant.operator, str(mutant.place))
        rows.append(Row(*known_by, ruling.outcome, ruling.killed_by, ruling.also))
    return Campaign(
        mutants=rows,
        selected=len(mutants),
        complete=complete,
        score=score(rows),
        totals=totals(rows),
        seconds=seconds,
        workers=workers,
        sources={mutant.source.name: mutant.source.digest for mutant in mutants},
        reasons={ruling.id: ruling.reason for ruling in rulings if ruling.reason},
        diffs={ruling.id: known[ruling.id].diff for ruling in rulings if ruling.outcome == SURVIVED},
        ground=ground,
        tests={name: dict(digests) for name, digests in (tests or {}).items()},
        unlaunched=list(unlaunched),
    )


def totals(rows: Sequence[Row]) -> dict[str, int]:
    """How many were killed by a case, a test, the checker and compilation, are equivalent, and survived."""
    by = Counter(row.killed_by.partition(":")[0] for row in rows if row.outcome == KILLED)
    others = by[CHECKER] + by[COMPILATION] + by[TEST]
    outcomes = Counter(row.outcome for row in rows)
    return {
        "case": outcomes[KILLED] - others,
        TEST: by[TEST],
        CHECKER: by[CHECKER],
        COMPILATION: by[COMPILATION],
        EQUIVALENT: outcomes[EQUIVALENT],
        SURVIVED: outcomes[SURVIVED],
    }


def score(rows: Sequence[Row]) -> float | None:
    """Killed of those that are not equivalent, in [0, 1]."""
    judged = [row for row in rows if row.outcome != EQUIVALENT]
    return sum(row.outcome == KILLED for row in judged) / len(judged) if judged else None


def encode(report: Campaign) -> bytes:
    """As JSON, one mutant after the other."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n"


def decode(data: bytes) -> Campaign:
    """ValueError: another schema, a mutant twice, an unknown outcome, or numbers that do not follow from the rows."""
    try:
        read = msgspec.json.decode(data, type=Campaign)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"Expected a campaign's report but got: {error}") from None
    if read.schema != SCHEMA:
        raise ValueError(f"Expected the schema {SCHEMA} but got {read.schema!r}")
    if len({row.id for row in read.mutants}) != len(read.mutants):
        raise ValueError("Expected each mutant once but one stands twice")
    if unknown := {row.outcome for row in read.mutants} - {KILLED, EQUIVALENT, SURVIVED}:
        raise ValueError(f"Expected outcomes killed, equivalent and survived but got {', '.join(sorted(unknown))}")
    # Reports that were written before tests could kill name no such total.
    if {TEST: 0, **read.totals} != totals(read.mutants) or read.score != score(read.mutants):
        raise ValueError("Expected totals and score that follow from the mutants but they do not")
    if read.complete != (len(read.mutants) == read.selected):
        meant = "complete" if len(read.mutants) == read.selected else "not complete"
        raise ValueError(
            f"Expected a report of {len(read.mutants)} of {counted(read.selected, 'mutant')} that says it is {meant} "
            f"but got complete: {str(read.complete).lower()}"
        )
    return read


def write(report: Campaign, path: Path) -> None:
    """Writes a report as JSON, in place of what is there."""
    beside = path.with_name(f".{path.name}.part")
    beside.write_bytes(encode(report))
    beside.replace(path)


def refuted(reasons: Mapping[str, str], rows: Sequence[Row]) -> list[Row]:
    """Mutants that have a written reason and were killed all the same."""
    return [row for row in rows if row.id in reasons and row.outcome == KILLED]
