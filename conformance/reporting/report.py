"""The report: one JSON document a run, from which every other rendering and the exit code are made."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from mlx_assay.conformance.record import Record
from mlx_assay.conformance.verdict import (
    EXIT_CONFORMS,
    EXIT_DIFFERS,
    EXIT_INCOMPLETE,
    FAULTS,
    INCOMPLETE,
    Verdict,
)

SCHEMA: Literal["urn:mlx-assay:report:1"] = "urn:mlx-assay:report:1"
BUFFER = 1 << 20
Outcome = Literal["conforms", "differs", "incomplete"]
EXIT_CODES: dict[Outcome, int] = {
    "conforms": EXIT_CONFORMS,
    "differs": EXIT_DIFFERS,
    "incomplete": EXIT_INCOMPLETE,
}


class OracleState(msgspec.Struct, frozen=True):
    """One oracle on this machine: its version, whether its self-test held, and what to do if not."""

    state: Literal["ok", "missing", "faulty"]
    version: str = ""
    reason: str = ""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run took place. `packages` are versions by distribution; those absent are left out.

    `graph_compiler` is what MLX fuses compiled graphs with, empty where it has none and runs operation by operation.
    `device_class` is what bits depend on: `g16` and the like for Apple GPUs, `paravirtual` for those of hosted virtual
    Macs, `host-x86_64` for the host executor.
    """

    python: str
    platform: str
    machine: str
    packages: dict[str, str]
    graph_compiler: str = ""
    device: str = ""
    device_class: str = ""
    oracles: dict[str, OracleState] = {}


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """What judged: this suite's version, and SHA-256 over the files of its fixtures and of all else that judges."""

    version: str
    fixtures: str
    judge: str


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The commit of the folder in which the run was started, and whether files there differ from it; empty for none."""

    commit: str = ""
    dirty: bool = False


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a run that is split over machines: its number, from 1, of how many; `whole` digests all case ids."""

    index: int
    count: int
    whole: str


class ContractRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What an operation promises, in words: a summary, its rules by number, and its relaxations."""

    summary: str
    rules: dict[str, str]
    relaxations: list[str]


class Implementation(msgspec.Struct, frozen=True, kw_only=True):
    """What was judged: its name as it was asked for, the operations that it has, and what it says of itself."""

    name: str
    operations: list[str] = []
    details: dict[str, str] = {}


class Executor(msgspec.Struct, frozen=True, kw_only=True):
    """Where kernel text ran: metal, cuda or host, with compiler, float modes and device as it describes itself."""

    name: str
    details: dict[str, str] = {}


class SelectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for. `not_asked` are operations that the implementation lacks, `without` oracles left out."""

    queries: list[str]
    tier: str
    seed: int
    not_asked: list[str] = []
    without: list[str] = []


class Totals(msgspec.Struct, frozen=True, kw_only=True, rename=lambda name: name.replace("_", "-")):
    """Cases that were to run, cases that ran, and how many got each verdict."""

    declared: int
    executed: int
    same_bits: int = 0
    same_value: int = 0
    within_ulp: int = 0
    within_bound: int = 0
    differs: int = 0
    oracles_disagree: int = 0
    unsupported: int = 0
    error: int = 0
    crashed: int = 0
    timed_out: int = 0
    not_run: int = 0

    @classmethod
    def of(cls, declared: int, records: Sequence[Record]) -> Totals:
        """Counts verdicts; a case that is declared but has no record is not executed."""
        counts = Counter(record.verdict for record in records)
        named = {verdict.value.replace("-", "_"): count for verdict, count in counts.items()}
        return cls(declared=declared, executed=len(records), **named)

    def verdicts(self) -> dict[Verdict, int]:
        """Counts by verdict, in the order of the enumeration, those of zero left out."""
        counts = {verdict: getattr(self, verdict.value.replace("-", "_")) for verdict in Verdict}
        return {verdict: count for verdict, count in counts.items() if count}


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Where time went: how often a stage was entered, and CPU and wall seconds in it, all processes of a kind together.

    `process` is command, judge or implementation; `operation` is empty for what belongs to no case.
    """

    process: str
    stage: str
    operation: str
    count: int
    cpu: float
    wall: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. `complete` is false while it runs, and stays so if it was cut short.

    `run` is a name that no other run has, `leg` what a gate knows it by. `contracts` tells of the operations that have
    a case that does not conform. `altered` names files of the suite that changed meanwhile: such a run is incomplete,
    whatever its cases say. `stages` tells where its time went, where that was asked for.

    Tensor values are hex bit strings, never decimal floats. `started` is UTC, ISO 8601; `seconds` is wall time.
    """

    schema: Literal["urn:mlx-assay:report:1"]
    run: str = ""
    leg: str = ""
    started: str
    seconds: float
    suite: Suite | None = None
    source: Source = Source()
    shard: Shard | None = None
    environment: Environment
    implementation: Implementation
    executor: Executor
    selection: SelectionRecord
    totals: Totals
    complete: bool
    altered: list[str] = []
    stages: list[Stage] = []
    verdict: Outcome
    contracts: dict[str, ContractRecord] = {}
    cases: list[Record]

    @property
    def exit_code(self) -> int:
        """What the run's process returns."""
        return EXIT_CODES[self.verdict]


def outcome(declared: int, records: Sequence[Record], complete: bool) -> Outcome:
    """The verdict of a run: incomplete before differs, conforms only if every declared case ran and conforms.

    A case that conforms by the oracles at hand, while another oracle of its contract is missing, leaves the run
    incomplete.
    """
    untold = any(record.verdict in INCOMPLETE or record.missing for record in records)
    if not complete or not records or len(records) != declared or untold:
        return "incomplete"
    if any(record.verdict in FAULTS or not record.conforms for record in records):
        return "differs"
    return "conforms"


def encode(report: Report) -> bytes:
    """The document: JSON of two-space indents, keys in the order of the structs, one newline at its end."""
    return b"".join(pieces(report))


def pieces(report: Report) -> Iterator[bytes]:
    """The document in pieces of about a case, so that a large one is never in memory as a whole."""
    around = _formatted(msgspec.structs.replace(report, cases=[]))
    before, _, after = around.rpartition(b"[]")
    assert (before[-9:], after) == (b'"cases": ', b"\n}"), "cases are the last field"
    yield before + b"["
    for place, record in enumerate(report.cases):
        yield b",\n    " if place else b"\n    "
        yield _formatted(record).replace(b"\n", b"\n    ")
    yield (b"\n  ]" if report.cases else b"]") + after + b"\n"


def _formatted(struct: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(struct), indent=2)


def decode(document: bytes) -> Report:
    """Reads a report; msgspec.ValidationError (a ValueError) says where it is not one."""
    return msgspec.json.decode(document, type=Report)


def write(report: Report, path: Path) -> None:
    """Replaces the file in one step, so that a reader never sees half a report."""
    path = path.resolve()
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb", buffering=BUFFER) as file:
            file.writelines(pieces(report))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def schema() -> dict[str, Any]:
    """The JSON Schema of a report, as published in report.schema.json."""
    generated = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}
