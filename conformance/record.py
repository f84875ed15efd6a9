"""The record of one judged case, as it crosses process borders and stands in the report."""

from __future__ import annotations

import shlex

import msgspec

from mlx_assay.conformance.verdict import Verdict


class Place(msgspec.Struct, frozen=True):
    """Where two outputs differ first: index, and both encodings as hex bit strings."""

    index: list[int]
    got: str
    want: str


class Bar(msgspec.Struct, frozen=True):
    """One bar of a histogram: how many places lie `least` to `most` ULP away; signs are those of got - want."""

    least: int
    most: int
    count: int


class Map(msgspec.Struct, frozen=True, kw_only=True):
    """Where differing places lie, the output seen as a matrix of its last axis and all before it.

    A grid of `rows` by `columns` cells, each `row_extent` by `column_extent` elements (the last of a row or column may
    hold fewer); `counts` are the differing places a cell, row by row.
    """

    rows: int
    columns: int
    row_extent: int
    column_extent: int
    counts: list[int]


class Diagnosis(msgspec.Struct, frozen=True):
    """One thing that is said of a difference: a kind, a sentence, and how many differing places it accounts for.

    `rule` is the number of the contract's rule that is broken, where the contract tells.
    """

    kind: str
    text: str
    covers: int
    rule: str = ""


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """How the differing places of one output lie and what they hold, from both whole outputs.

    `diagnoses` stand best first. `without_distance` are differing places that no ULP distance has.
    """

    dtype: str
    shape: list[int]
    diagnoses: list[Diagnosis] = []
    histogram: list[Bar] = []
    without_distance: int = 0
    map: Map | None = None


class Difference(msgspec.Struct, frozen=True):
    """What is known of a difference; `worst_ulp` is null where no distance exists (NaN against a number, shapes).

    `policy` is the rung that was needed, `rule` the number of the
    contract's rule that is broken: by what the output is known for, else by the oracle, else by the operation.
    """

    subcase: str
    oracle: str
    count: int
    total: int
    worst_ulp: int | None
    places: list[Place]
    explanation: str = ""
    policy: str = ""
    rule: str = ""
    pattern: Pattern | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One case: what was run, what was said of it, and how to run it again.

    `oracle` names the primary oracle, `oracles` all that judged, `missing` those that could not. `conforms` says
    whether every reference's rung was reached. `message` is empty where the case conforms. `output` is the last that
    what was judged wrote to its standard streams during the case, cut and cleaned, where the case does not conform.
    `tensors` is the file that holds inputs and both outputs of a differing case, relative to the report's folder, and
    `tensors_sha256` the digest of its bytes: a later run may have put another in its place.
    `launches` are those of kernels that ran under the checker, where the run was asked for it.
    """

    id: str
    operation: str
    dtype: str
    tags: list[str]
    why: str
    verdict: Verdict
    conforms: bool
    oracle: str
    oracles: list[str]
    missing: list[str]
    subcases: int
    seconds: float
    replay: str
    relaxations: list[str] = []
    message: str = ""
    difference: Difference | None = None
    output: str = ""
    tensors: str = ""
    tensors_sha256: str = ""
    launches: int = 0


def replay_command(
    case_id: str,
    implementation: str | None = None,
    executor: str | None = None,
    profile: str | None = None,
    checked: bool = False,
) -> str:
    """What a person types to run a case again."""
    command = f"mlx-assay replay '{case_id}'"
    if implementation:
        command += f" --implementation {shlex.quote(implementation)}"
    if executor:
        command += f" --executor {shlex.quote(executor)}"
    if profile:
        command += f" --profile {shlex.quote(profile)}"
    if checked:
        command += " --checked"
    return command
