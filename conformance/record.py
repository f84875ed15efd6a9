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


class Difference(msgspec.Struct, frozen=True):
    """What is known of a difference; `worst_ulp` is null where no distance exists (NaN against a number, shapes)."""

    subcase: str
    oracle: str
    count: int
    total: int
    worst_ulp: int | None
    places: list[Place]
    explanation: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One case: what was run, what was said of it, and how to run it again.

    `oracle` names the primary oracle, `oracles` all that judged, `missing` those that could not. `conforms` says
    whether every reference's rung was reached. `message` is empty where the case conforms.
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


def replay_command(
    case_id: str, implementation: str | None = None, executor: str | None = None, profile: str | None = None
) -> str:
    """What a person types to run a case again."""
    command = f"mlx-assay replay '{case_id}'"
    if implementation:
        command += f" --implementation {shlex.quote(implementation)}"
    if executor:
        command += f" --executor {shlex.quote(executor)}"
    if profile:
        command += f" --profile {shlex.quote(profile)}"
    return command
