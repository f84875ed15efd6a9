"""The document of a comparison of releases: one JSON object, from which table, Markdown and the exit code are made."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE

SCHEMA: Literal["urn:mlx-assay:versions:1"] = "urn:mlx-assay:versions:1"
DoorName = Literal["cpu", "metal"]
DOORS: tuple[DoorName, ...] = ("cpu", "metal")
Outcome = Literal["same", "explained", "drifted", "incomplete"]
EXIT_CODES: dict[Outcome, int] = {
    "same": EXIT_CONFORMS,
    "explained": EXIT_CONFORMS,
    "drifted": EXIT_DIFFERS,
    "incomplete": EXIT_INCOMPLETE,
}


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """One input whose answers differ, and its first place that does, in row-major order.

    `case` is an id of the suite's, or of a special row (`rows/...`, `matrices/...`); `label` names the subcase. `shape`
    is the first argument's. `old_bits` and `new_bits` are hexadecimal, `old` and `new` the values; where a call raised,
    or shapes or dtypes differ, these stand in `old` and `new`, and `place` is empty.
    """

    case: str
    label: str
    shape: list[int]
    place: list[int]
    old_bits: str
    new_bits: str
    old: str
    new: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """A rule of a contract that changed between the releases, and that both answers keep to."""

    contract: str
    rule: int
    text: str
    since: str
    until: str
    source: str


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two neighbouring releases for one operation, door and dtype, for one reason.

    `inputs` of `compared` differ. `explanations` are empty where no rule says that the answers change.
    """

    operation: str
    door: DoorName
    dtype: str
    old_release: str
    new_release: str
    inputs: int
    compared: int
    example: Example
    explanations: list[Explanation] = []


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One release by one door: whether it answered, and why not."""

    release: str
    door: DoorName
    answered: bool
    reason: str = ""
    seconds: float = 0.0


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that raised the same error on `inputs` inputs in both of two neighbouring releases."""

    operation: str
    door: DoorName
    dtype: str
    old_release: str
    new_release: str
    inputs: int
    message: str


class VersionsReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole comparison. `releases` are from old to new; `inputs` counts questions by operation and dtype.

    `not_asked` are operations that a door does not have. `started` is UTC, ISO 8601; `seconds` is wall time.
    """

    schema: Literal["urn:mlx-assay:versions:1"]
    started: str
    seconds: float
    version: str
    python: str
    platform: str
    releases: list[str]
    queries: list[str]
    inputs: dict[str, dict[str, int]]
    asked: list[Asked]
    not_asked: dict[str, list[str]]
    drifts: list[Drift]
    faults: list[Fault]
    verdict: Outcome

    @property
    def exit_code(self) -> int:
        """What the command's process returns."""
        return EXIT_CODES[self.verdict]


def verdict(asked: list[Asked], drifts: list[Drift], faults: list[Fault]) -> Outcome:
    """Drift that no rule explains outranks what could not be asked."""
    if any(not drift.explanations for drift in drifts):
        return "drifted"
    if faults or not asked or not all(each.answered for each in asked):
        return "incomplete"
    return "explained" if drifts else "same"


def encode(report: VersionsReport) -> bytes:
    """The report as indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def decode(content: bytes) -> VersionsReport:
    """A report that `encode` wrote; msgspec.ValidationError for anything else."""
    return msgspec.json.decode(content, type=VersionsReport)


def schema() -> dict[str, Any]:
    """The JSON schema of the document (draft 2020-12), which stands beside this module."""
    made = msgspec.json.schema(VersionsReport)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **made}
