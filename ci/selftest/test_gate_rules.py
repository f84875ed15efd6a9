"""Rules of the gate where one condition decides, asked directly or through the verb."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sound import COMMIT, NOW, POLICY, Gate, ids, report

from mlx_assay.conformance.gating import presence
from mlx_assay.conformance.gating.decision import Artefact, Decision, Digested, GroupRow, LegRow, decide
from mlx_assay.conformance.gating.reading import load
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.gating.waiving import WaiverState
from mlx_assay.conformance.reporting.report import Report, Source
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE, Verdict

FIRST, ALL = ids()[0], len(ids())
METAL = """
[legs.m4]
implementation = "kernels"
device_class = ["g16"]
executor = "metal"
queries = ["normalized_argmax/bfloat16/ties/*"]
cases = 20
"""
WAIVER = f"""
[[waivers]]
query = "{FIRST}"
reason = "known since June"
issue = "https://example.org/issues/1"
expect = "differs"
until = 2026-06-30
leg = "m4"
"""


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


def test_a_waiver_about_a_leg_that_need_not_be_there_waits_for_it(gate: Gate) -> None:
    asked = POLICY + METAL + "required = false\n" + WAIVER
    assert gate(report(), policy=asked) == EXIT_CONFORMS, gate.text
    assert f"waiver not judged: {FIRST}" in gate.text


def test_commits_that_reports_are_of_are_named(gate: Gate) -> None:
    one, other = "ab" * 20, "cd" * 20
    asked = (POLICY + METAL).replace("age_hours = 24", "age_hours = 24\ncommit = false")
    both = report(source=Source(commit=other)), report("m4", device="g16", source=Source(commit=one))
    assert gate(*both, policy=asked, options=["--commit", one]) == EXIT_INCOMPLETE
    assert f"they are of several commits: {one}, {other}:" in gate.text.replace("\n", " ")


SMOKE = METAL.replace("[legs.m4]", "[legs.smoke]").replace('"g16"', '"paravirtual"') + "bits = false\n"
LATER = METAL.replace("[legs.m4]", "[legs.later]") + "required = false\n"
MOMENT = datetime.fromisoformat(NOW)


def decided(folder: Path, policy: str, *reports: Report, **more: Any) -> Decision:
    """A decision on reports, by a policy in a file."""
    files = []
    for number, one in enumerate(reports):
        files.append(str(folder / f"{number}.json"))
        Path(files[-1]).write_bytes(msgspec.json.encode(one))
    (folder / "policy.toml").write_text(policy)
    return decide(load(str(folder / "policy.toml")), files, MOMENT, COMMIT, **more)


def test_a_decision_tells_legs_and_operations_in_numbers(tmp_path: Path) -> None:
    first, second, third, fourth = ids()[:4]
    waived = WAIVER.replace('leg = "m4"', 'leg = "host"')
    host = report(verdicts={first: Verdict.DIFFERS, second: Verdict.CRASHED, third: Verdict.DIFFERS})
    smoke = report(
        "smoke", device="paravirtual", verdicts={third: Verdict.DIFFERS, second: Verdict.DIFFERS, fourth: Verdict.ERROR}
    )
    found = decided(
        tmp_path, POLICY + SMOKE + LATER + waived, host, smoke, artefact=Artefact(name="a", sha256="0" * 64)
    )
    assert (found.verdict, found.exit_code, found.now, found.commit) == ("differs", 1, NOW, COMMIT)
    assert found.legs == [
        LegRow(
            leg="host", verdict="differs", bits=True, device_class="host-x86_64", executor="host", cases=ALL, waived=1,
            warned=0, failing=2,
        ),
        LegRow(
            leg="smoke", verdict="differs", bits=False, device_class="paravirtual", executor="metal", cases=ALL,
            waived=0, warned=2, failing=1,
        ),
        LegRow(leg="later", verdict="absent", bits=True),
    ]  # fmt: skip
    same = {"operation": "normalized_argmax", "dtype": "bfloat16", "cases": ALL}
    assert found.operations == [
        GroupRow(
            leg="host", verdicts={"same-bits": ALL - 3, "differs": 2, "crashed": 1}, waived=1, warned=0, failing=2,
            **same,
        ),
        GroupRow(
            leg="smoke", verdicts={"same-bits": ALL - 3, "differs": 2, "error": 1}, waived=0, warned=2, failing=1,
            **same,
        ),
    ]  # fmt: skip
    (state,) = found.waivers
    assert state == WaiverState(
        query=first, leg="host", expect="differs", until=date(2026, 6, 30), issue="https://example.org/issues/1",
        reason="known since June", state="holds", cases=1,
    )  # fmt: skip
    assert [(one.outcome, one.where, one.text.partition(":")[0]) for one in found.reasons] == [
        ("differs", "host", "crashed"), ("differs", "host", "differs"), ("differs", "smoke", "error"),
    ]  # fmt: skip
    assert [one.mend for one in found.reasons] == [
        f"mlx-assay replay '{one}' --implementation kernels" for one in (second, third, fourth)
    ]
    assert found.artefact == Artefact(name="a", sha256="0" * 64)
    assert (found.suite, found.mutants) == (Suite().installed, None)
    assert [(one.leg, one.run) for one in found.reports] == [("host", host.run), ("smoke", smoke.run)]
    for one in (*found.reports, found.policy):
        assert one.sha256 == hashlib.sha256(Path(one.file).read_bytes()).hexdigest()
    assert found.policy == Digested(file=str(tmp_path / "policy.toml"), sha256=found.policy.sha256)


def test_operations_are_told_in_their_order(tmp_path: Path) -> None:
    queries = [
        "apply_token_bitmask/float32/mask/*",
        "normalized_argmax/float16/ties/tile",
        "normalized_argmax/bfloat16/ties/tile",
    ]
    asked = POLICY.replace('["normalized_argmax/bfloat16/ties/*"]', str(queries).replace("'", '"')).replace(
        "cases = 20", "cases = 1"
    )
    found = decided(tmp_path, asked, report(queries=queries))
    assert found.verdict == "conforms", found.reasons
    assert [(one.operation, one.dtype) for one in found.operations] == [
        ("apply_token_bitmask", "float32"), ("normalized_argmax", "bfloat16"), ("normalized_argmax", "float16"),
    ]  # fmt: skip
    assert [one.cases for one in found.operations] == [
        sum(case.startswith(f"{one.operation}/{one.dtype}/") for case in ids(queries)) for one in found.operations
    ]
    assert all(one.verdicts == {"same-bits": one.cases} for one in found.operations)


def test_a_leg_that_cannot_be_relied_on_is_incomplete_and_has_no_numbers(tmp_path: Path) -> None:
    old = report(minutes=60 * 25)
    found = decided(tmp_path, POLICY + METAL, old)
    assert (found.verdict, found.exit_code) == ("incomplete", 3)
    assert [(one.leg, one.verdict, one.cases) for one in found.legs] == [
        ("host", "incomplete", ALL),
        ("m4", "incomplete", 0),
    ]
    assert [one.where for one in found.reasons] == ["host", "m4"]


MOMENTS = {
    "as it should be": (60, 2000.5, None),
    "a day to the second": (24 * 60, 0.0, None),
    "older by a second": (24 * 60 + 1 / 60, 0.0, "it is older than 24 hours: it started 2026-05-31T11:59:59+00:00"),
    "a clock that goes before, within five minutes": (0, 300.0, None),
    "a clock that goes before, by more": (
        0,
        300.001,
        "it is from the future: it ended 2026-06-01T12:05:00.001000+00:00",
    ),
    "time that runs backward counts for none": (-5, -1.0, None),
    "and one before its start": (-5.1, -400.0, "it is from the future: it ended 2026-06-01T12:05:06+00:00"),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_when_a_report_is_of_its_time(name: str) -> None:
    minutes, seconds, told = MOMENTS[name]
    started = (MOMENT - timedelta(minutes=minutes)).isoformat()
    made = msgspec.structs.replace(report(), started=started, seconds=seconds)
    found = [text for text, _ in presence._when(made, 24, MOMENT)]
    assert [text[: len(told or "")] for text in found] == ([told] if told else [])


@pytest.mark.parametrize("started", ["", "soon", "2026-06-01T12:00:00", "9999-12-31T23:59:59+00:00"])
def test_a_time_that_is_none(started: str) -> None:
    made = msgspec.structs.replace(report(), started=started)
    ((text, mend),) = presence._when(made, 24, MOMENT)
    assert text == f"expected the time when it started but got {started!r}"
    assert mend == "run it again"


def test_a_moment_has_an_offset() -> None:
    assert presence.moment("2026-01-31T12:00:00+02:00") == datetime(2026, 1, 31, 10, tzinfo=UTC)
    with pytest.raises(ValueError, match="Expected a time with its offset"):
        presence.moment("2026-01-31T12:00:00")
