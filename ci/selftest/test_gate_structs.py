"""What a gate states: it cannot be changed, each of its fields is named, and what is empty is left out."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest
from sound import QUERY, ids, report

from mlx_assay.conformance.gating.decision import Artefact, Decision, Digested, GroupRow, LegRow
from mlx_assay.conformance.gating.policy import SCHEMA, Leg, Policy
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.gating.waiving import Judged, WaiverState, failures, judged
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Suite as Judging
from mlx_assay.conformance.verdict import Verdict

LEG = Leg(implementation="kernels", device_class=["host-*"], executor="host", cases=1, queries=[QUERY])
POLICY = Policy(schema=SCHEMA, age_hours=24, legs={"host": LEG})
FILE = Digested(file="a.json", sha256="0" * 64)
STATED: tuple[Any, ...] = (
    FILE,
    Artefact(name="a", sha256="0" * 64),
    LegRow(leg="host", verdict="absent", bits=True),
    GroupRow(leg="host", operation="a", dtype="b", cases=1, verdicts={}, waived=0, warned=0, failing=0),
    WaiverState(
        query="a", leg="", expect="differs", until=date(2026, 6, 1), issue="", reason="", state="holds", cases=1
    ),
    Decision(
        schema="urn:mlx-assay:gate:1", verdict="conforms", now="", commit="", policy=FILE, artefact=None, reports=[],
        suite=Judging(version="1", fixtures="", judge=""), legs=[], operations=[], waivers=[], reasons=[],
    ),
)  # fmt: skip
WORKED = judged("host", LEG, report(), POLICY, Suite(), set())


@pytest.mark.parametrize("one", [*STATED, WORKED], ids=lambda one: type(one).__name__)
def test_fields_are_named(one: Any) -> None:
    values = [getattr(one, name) for name in one.__struct_fields__]
    assert type(one)(**dict(zip(one.__struct_fields__, values, strict=True))) == one
    with pytest.raises(TypeError):
        type(one)(*values)


@pytest.mark.parametrize("one", STATED, ids=lambda one: type(one).__name__)
def test_what_is_stated_cannot_be_changed(one: Any) -> None:
    name = one.__struct_fields__[0]
    with pytest.raises(AttributeError):
        setattr(one, name, getattr(one, name))


def test_a_file_that_is_no_report_has_no_leg_and_no_run() -> None:
    assert msgspec.to_builtins(FILE) == {"file": "a.json", "sha256": "0" * 64}
    whole = Digested(file="a", sha256="b", leg="c", run="d")
    assert msgspec.to_builtins(whole) == {"file": "a", "sha256": "b", "leg": "c", "run": "d"}
    assert set(msgspec.to_builtins(STATED[2])) == set(LegRow.__struct_fields__)


def test_a_command_that_is_too_long_is_cut() -> None:
    made = report(verdicts={ids()[0]: Verdict.DIFFERS})
    case = msgspec.structs.replace(made.cases[0], replay="x" * 900)
    leg: Judged = judged(
        "host", LEG, msgspec.structs.replace(made, cases=[case, *made.cases[1:]]), POLICY, Suite(), set()
    )
    (told,) = failures(leg)
    assert told.mend == printed("x" * 900, 400)
    assert 390 < len(told.mend) < 420
