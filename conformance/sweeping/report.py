"""The report of a campaign: one JSON document, from which the closing lines and the exit code are made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from mlx_assay.conformance.reporting.report import EXIT_CODES, Environment, Outcome, Source
from mlx_assay.conformance.sweeping.account import SweepRecord
from mlx_assay.conformance.sweeping.identity import Identity
from mlx_assay.conformance.verdict import INCOMPLETE

SCHEMA: Literal["urn:mlx-assay:sweeps:1"] = "urn:mlx-assay:sweeps:1"


class Totals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sums over the sweeps; `whole` says that every input of theirs was asked for."""

    sweeps: int
    asked: int
    judged: int
    differing: int
    whole: bool


class Campaign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole campaign. `chunks` are the numbers asked for, first and behind the last, null for all of them.

    `seconds` is the wall time of this run, `resumed` how many chunks an earlier one had left in the journal. `altered`
    names files of the suite that changed meanwhile: such a campaign is incomplete, whatever its sweeps say.
    `not_asked` are sweeps whose operation the implementation lacks.
    """

    schema: Literal["urn:mlx-assay:sweeps:1"]
    started: str
    seconds: float
    scheduler: str
    journal: str
    resumed: int
    identity: Identity
    source: Source = Source()
    environment: Environment
    queries: list[str]
    chunks: tuple[int, int] | None
    not_asked: list[str] = []
    totals: Totals
    complete: bool
    altered: list[str] = []
    verdict: Outcome
    sweeps: list[SweepRecord]

    @property
    def exit_code(self) -> int:
        """What the campaign's process returns."""
        return EXIT_CODES[self.verdict]


def totals(records: Sequence[SweepRecord]) -> Totals:
    """Adds the sweeps up."""
    return Totals(
        sweeps=len(records),
        asked=sum(record.asked for record in records),
        judged=sum(record.judged for record in records),
        differing=sum(record.differing for record in records),
        whole=all(record.asked == record.inputs for record in records),
    )


def outcome(records: Sequence[SweepRecord], complete: bool) -> Outcome:
    """Incomplete before differs; conforms only if every chunk that was asked for has come and conforms."""
    untold = any(
        record.verdict in INCOMPLETE or record.missing or record.chunks_judged < record.chunks for record in records
    )
    if not complete or not records or untold:
        return "incomplete"
    if any(not record.conforms or record.judged < record.asked for record in records):
        return "differs"
    return "conforms"


def encode(report: Campaign) -> bytes:
    """JSON of two-space indents, keys in the order of the structs, one newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode(document: bytes) -> Campaign:
    """ValueError: no report of this schema, or totals and a verdict that do not follow from its sweeps."""
    try:
        found = msgspec.json.decode(document, type=Campaign)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"Expected the report of a campaign but got: {error}") from None
    if len({record.id for record in found.sweeps}) != len(found.sweeps):
        raise ValueError("Expected each sweep once but one stands twice")
    if found.totals != totals(found.sweeps) or found.verdict != outcome(found.sweeps, found.complete):
        raise ValueError("Expected totals and a verdict that follow from the sweeps but they do not")
    return found


def write(report: Campaign, path: Path) -> None:
    """Replaces the file in one step."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(encode(report))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report, as published in sweeps.schema.json."""
    generated = msgspec.json.schema(Campaign)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}
