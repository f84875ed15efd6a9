"""The document of a difference between two reports, from which text, Markdown and the exit code are made."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mlx_assay.conformance.record import Place
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, Verdict

SCHEMA: Literal["urn:mlx-assay:diff:1"] = "urn:mlx-assay:diff:1"
Kind = Literal["newly-failing", "still-failing", "gone", "newly-passing", "other-rung", "new"]
KINDS: tuple[Kind, ...] = ("newly-failing", "still-failing", "gone", "newly-passing", "other-rung", "new")
"""What can be said of a case, gravest first."""

Part = Literal["verdict", "bits", "expected", "diagnosis", "message"]
Bits = Literal["same", "alike", "other", "unknown"]
Outcome = Literal["no-worse", "worse", "incomplete"]
EXIT_CODES: dict[Outcome, int] = {
    "no-worse": EXIT_CONFORMS,
    "worse": EXIT_DIFFERS,
    "incomplete": EXIT_INCOMPLETE,
}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What one report says of a case; the counts are 0 where outputs were not compared."""

    verdict: Verdict
    conforms: bool
    message: str = ""
    subcase: str = ""
    oracle: str = ""
    count: int = 0
    total: int = 0
    worst_ulp: int | None = None
    places: list[Place] = []
    diagnoses: list[str] = []
    replay: str = ""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A case of which the two reports do not say the same.

    `kind` is `newly-failing` (it fails in the new report alone), `still-failing` (in both, otherwise), `gone`,
    `newly-passing`, `other-rung` (it conforms in both, on another rung of the ladder) or `new` (and conforms). `old`
    or `new` is null where that report does not have it. `parts` are what differs.

    `bits` tells of the outputs of a case that fails in both: `same` and `other` from whole outputs, or `other` from
    what the reports show of them; `alike` where nothing that the reports show differs; `unknown` elsewhere.
    """

    kind: Kind
    id: str
    operation: str
    dtype: str
    why: str = ""
    old: Seen | None = None
    new: Seen | None = None
    parts: list[Part] = []
    bits: Bits = "unknown"


class Setting(msgspec.Struct, frozen=True):
    """A field of what judged, what was judged, where and what was asked for, as text; null where one lacks it."""

    field: str
    old: str | None
    new: str | None


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two reports; `verdict` is what its cases say, whatever it says itself."""

    path: str
    run: str
    leg: str
    started: str
    implementation: str
    executor: str
    device_class: str
    verdict: Literal["conforms", "differs", "incomplete"]
    declared: int
    cases: int
    failing: int


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Two reports, and what changed from the old one to the new one.

    `conforming` and `failing` count the cases of which both say the same, `same_bits` the failing ones among them of
    which whole outputs say so. `reasons` are why the comparison is incomplete, `notes` what could not be looked at.
    """

    schema: Literal["urn:mlx-assay:diff:1"]
    verdict: Outcome
    old: Side
    new: Side
    settings: list[Setting]
    counts: dict[Kind, int]
    conforming: int
    failing: int
    same_bits: int
    changes: list[Change]
    reasons: list[str] = []
    notes: list[str] = []

    @property
    def exit_code(self) -> int:
        """What the command's process returns."""
        return EXIT_CODES[self.verdict]


def grave(change: Change) -> bool:
    """Whether a change makes the new report worse: a case fails anew, or as it did not before."""
    return change.kind == "newly-failing" or (
        change.kind == "still-failing" and (change.bits == "other" or "verdict" in change.parts)
    )


def encode(difference: Difference) -> bytes:
    """The document as indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(difference), indent=2) + b"\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the document, as published in diff.schema.json."""
    made = msgspec.json.schema(Difference)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **made}
