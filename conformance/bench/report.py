"""The report of a benchmark: one JSON document, from which text and Markdown are made."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mlx_assay.conformance.bench.figure import Figure
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE

SCHEMA: Literal["urn:mlx-assay:bench:1"] = "urn:mlx-assay:bench:1"
Outcome = Literal["measured", "differs", "trick", "error", "incomplete"]
Rotations = Literal["beyond the cache", "in the cache", "next to nothing", "on the host"]

Less = Literal["first", "second", "neither"]
FIRST: Less = "first"
SECOND: Less = "second"
NEITHER: Less = "neither"


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Entry(_Part, frozen=True):
    """One contender of one rotation.

    `figure` is null where it is missing, or earned none. `whole` counts making the calls in Python too; it is the
    figure itself where work was done during the calls (`lazy` false). `same` says whether it has the contract's bits
    by declaration.
    """

    name: str
    figure: Figure | None = None
    whole: Figure | None = None
    lazy: bool = False
    same: bool = True
    note: str = ""
    missing: str = ""


class Rotation(_Part, frozen=True):
    """One way of walking through content. `bytes_read` are the different bytes that a queue reads.

    `limit` is nanoseconds: the bytes that must move, at the copy's speed. `idle` is a queue of no calls. `checked` of
    the implementation's `timed` outputs were held against the oracle, `compared` against the reference on the same
    device.
    """

    name: Rotations
    bytes_read: int
    entries: list[Entry]
    idle: Figure | None = None
    limit: float | None = None
    timed: int = 0
    checked: int = 0
    compared: int = 0
    seconds: float = 0.0


class Copied(_Part, frozen=True):
    """The device's copy: bytes a second, read and written ones together, and how it was made."""

    way: str
    size: int
    bytes_a_second: float
    spread: float


class Judged(_Part, frozen=True):
    """The conformance before: how many cases, and the first that does not conform."""

    cases: int
    failing: str = ""
    message: str = ""
    seconds: float = 0.0


class Form(_Part, frozen=True):
    """What one implementation's launches do, as counted on the host: measures by name, in the order of their keys."""

    name: str
    launches: int
    measures: dict[str, float]


class Demand(_Part, frozen=True):
    """What one form asks of a modelled device: its units in all, and of them those of its launches whatever they do.

    `limit` is the resource that limits the launch that asks most, `threadgroups` those of the launch that has most.
    """

    name: str
    units: float
    launches: int
    launching: float
    limit: str
    threadgroups: int


class Compared(_Part, frozen=True):
    """Two forms on one modelled device of `cores` cores: units are its cycles, no time.

    `less` says which of the two does less, `by` the measure that decides; neither where both are within 2 %.
    """

    device: str
    cores: int
    less: Less
    by: str
    first: Demand
    second: Demand


class Result(_Part, frozen=True):
    """One benchmark. `trick` names what the implementation tried where that is why it has no figure.

    `other` is what came of the implementation whose counts should stand beside; `compared` has one entry for each
    modelled device that was asked, none where `comparison`, which says it in words, says why not.
    """

    id: str
    operation: str
    dtype: str
    shape: dict[str, int]
    outcome: Outcome
    read_bytes: int
    written_bytes: int
    trick: str = ""
    message: str = ""
    judged: Judged | None = None
    rotations: list[Rotation] = []
    forms: list[Form] = []
    comparison: str = ""
    compared: list[Compared] = []
    other: Outcome = "measured"


class Report(_Part, frozen=True):
    """A whole benchmark, or with `complete` false what is there of one that is under way. `started`: UTC, ISO 8601."""

    schema: Literal["urn:mlx-assay:bench:1"]
    suite: str
    implementation: str
    against: str
    executor: str
    device: dict[str, str]
    started: str
    calls: int
    rounds: int
    copied: Copied | None
    results: list[Result]
    complete: bool = False

    @property
    def exit_code(self) -> int:
        """0 where all is measured, 1 where something differs, is a trick or an error, 3 where something is missing."""
        outcomes = {outcome for result in self.results for outcome in (result.outcome, result.other)}
        if not self.complete or not outcomes or "incomplete" in outcomes:
            return EXIT_INCOMPLETE
        return EXIT_CONFORMS if outcomes == {"measured"} else EXIT_DIFFERS


def encode(report: Report) -> bytes:
    """The document: two-space indents, keys in the structs' order, one newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def schema() -> dict[str, Any]:
    """The JSON Schema, as published in bench.schema.json."""
    generated = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}
