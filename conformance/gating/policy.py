"""The policy: which legs there must be, what each must have run and on what, the verdicts needed, and the waivers.

Unknown keys are refused at every level, since a rule that is misspelt would otherwise hold nothing.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

SCHEMA: Literal["urn:mlx-assay:policy:1"] = "urn:mlx-assay:policy:1"
PARAVIRTUAL = "paravirtual"
END = r"(?![\s\S])"
"""The end of a text; `$` would stand before a line's end too."""

Text = Annotated[str, Meta(min_length=1, max_length=1000)]
Hours = Annotated[int, Meta(ge=1, le=24 * 366)]
Count = Annotated[int, Meta(ge=1, le=10**9)]
Digest = Annotated[str, Meta(pattern="^(installed|any|[0-9a-f]{64})" + END)]
Link = Annotated[
    str, Meta(pattern=r"^https://[A-Za-z0-9.-]+\.[A-Za-z]+(:[0-9]+)?/[!#-&(-;=?-~]+" + END, max_length=500)
]
Globs = Annotated[list[Text], Meta(min_length=1)]
Rung = Literal["same-bits", "same-value", "within-ulp", "within-bound"]
Waivable = Literal[
    "same-value", "within-ulp", "within-bound", "differs", "unsupported", "error", "crashed", "timed-out"
]
"""What a waiver may expect: nothing by which a case was left unjudged, and not the strongest rung."""


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who judged. `version` is exact or a PEP 440 specifier; each may be `installed`, as in this environment.

    `any` leaves a digest open. Only where `fixtures` is the installed digest can it be told which cases a run lacks.
    """

    version: Text = "installed"
    fixtures: Digest = "installed"
    judge: Digest = "installed"


class Leg(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run that is expected, on one machine or in shards.

    `bits`: whether its verdicts count; a leg without them is smoke, which has to be there and not to crash.
    `device_class` are globs. `seed` is a number, or `any`, or `nonzero` for cases drawn afresh. `queries` are what the
    run was asked for, all of the tier where there are none. `cases` is the lowest number of cases, `least` that of the
    cases that a query means. `without` and `not_asked` are oracles that may have been left out and operations that the
    implementation may lack. `checked`: whether kernels must have run under the checker. `packages` must be there, those
    `allowed` may, in these versions.
    """

    implementation: Text
    device_class: Globs
    executor: Text
    cases: Count
    tier: Literal["quick", "full"] = "quick"
    seed: Annotated[int, Meta(ge=0, lt=2**31)] | Literal["any", "nonzero"] = 0
    queries: list[Text] = []
    least: dict[Text, Count] = {}
    bits: bool = True
    required: bool = True
    checked: bool = False
    age_hours: Hours | None = None
    without: list[Text] = []
    not_asked: list[Text] = []
    packages: dict[Text, Text] = {}
    allowed: dict[Text, Text] = {}


class Need(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict that cases must reach beyond what their contracts ask, on devices whose class a glob names, or all."""

    query: Text
    verdict: Rung
    device_class: list[Text] = []


class Waiver(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cases that are known to fail: how, why, where it is told, until which day (UTC), in one leg or all with bits."""

    query: Text
    reason: Annotated[str, Meta(min_length=8, max_length=1000, pattern=r"\S\s?\S\s?\S\s?\S")]
    issue: Link
    expect: Waivable
    until: date
    leg: str = ""


class Mutants(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a report of `mlx-assay mutate` must show: killed of those not equivalent, how many, and which operations."""

    score: Annotated[float, Meta(gt=0, le=1)]
    least: Count
    operations: list[Text] = []


class Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a gate asks. `commit`: whether reports must be of the commit that the command line names.

    `age_hours` is the largest age of a report. `dirty`: whether files may have differed from the commit. `packages`
    and `allowed` hold for every leg.
    """

    schema: Literal["urn:mlx-assay:policy:1"]
    age_hours: Hours
    legs: Annotated[dict[Annotated[str, Meta(pattern="^[A-Za-z0-9._-]{1,64}" + END)], Leg], Meta(min_length=1)]
    commit: bool = True
    dirty: bool = False
    suite: Rules = Rules()
    packages: dict[Text, Text] = {}
    allowed: dict[Text, Text] = {}
    needs: list[Need] = []
    waivers: list[Waiver] = []
    mutants: Mutants | None = None


def schema() -> dict[str, Any]:
    """The JSON Schema of a policy, as published in policy.schema.json."""
    generated = msgspec.json.schema(Policy)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **generated}
