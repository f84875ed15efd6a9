"""Cases held against the policy: which fail, which are waived, and which waivers no longer say what is."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import date
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

from mlx_assay.conformance.gating.coverage import known, meant
from mlx_assay.conformance.gating.policy import Leg, Need, Policy, Waiver
from mlx_assay.conformance.gating.reason import Reason, cases, differs, incomplete
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.record import Record
from mlx_assay.conformance.reporting.intake import printed
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict

State = Literal["holds", "expired", "unmatched", "wrong", "not judged"]


class WaiverState(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a waiver: it holds, is expired, meets no case, or meets one that does not fail as it says.

    It is not judged where it meets no case and a leg that it is about has no sound report.
    """

    query: str
    leg: str
    expect: str
    until: date
    issue: str
    reason: str
    state: State
    cases: int


class Judged(msgspec.Struct, kw_only=True):
    """One leg's cases by id: `failing` with the reason in a few words, `waived`, and `warned` in smoke legs."""

    name: str
    leg: Leg
    report: Report
    failing: dict[str, str]
    waived: set[str]
    warned: set[str]


def judged(name: str, leg: Leg, report: Report, policy: Policy, suite: Suite, met: set[int]) -> Judged:
    """Which cases of a leg fail; `met` gathers the numbers of the needs that some case met or missed."""
    made = Judged(name=name, leg=leg, report=report, failing={}, waived=set(), warned=set())
    for record in report.cases:
        if record.conforms or record.verdict in INCOMPLETE:
            continue
        if not leg.bits and record.verdict is Verdict.DIFFERS:
            made.warned.add(record.id)
        else:
            made.failing[record.id] = str(record.verdict)
    if leg.bits:
        for number, need in enumerate(policy.needs):
            _hold(made, need, suite, met, number)
    return made


def _hold(made: Judged, need: Need, suite: Suite, met: set[int], number: int) -> None:
    device = made.report.environment.device_class
    if need.device_class and not any(fnmatchcase(device, glob) for glob in need.device_class):
        return
    rung = Verdict(need.verdict)
    for record in meant(made.report.cases, need.query, suite, known(made.report, suite)):
        met.add(number)
        if record.conforms and not record.verdict.reaches(rung):
            made.failing.setdefault(record.id, f"{record.verdict} where {rung} is needed")


def waive(
    policy: Policy, legs: Sequence[Judged], today: date, suite: Suite, unsound: Set[str] = frozenset()
) -> tuple[list[WaiverState], list[Reason]]:
    """Moves cases from failing to waived, and says of each waiver what became of it.

    A waiver's every case must fail as it expects, in every leg that it is about. Cases that were not judged stay so.
    Of a waiver that meets no case nothing is said where a leg that it is about is `unsound`: it may meet one there.
    """
    covered: dict[tuple[str, str], int] = {}
    states: list[WaiverState] = []
    reasons: list[Reason] = []
    for number, waiver in enumerate(policy.waivers):
        where = f"waiver {number + 1} ({printed(waiver.query, 120)})"
        state, cases, text, mend = _met(waiver, number, legs, today, suite, covered)
        if state == "unmatched" and _about(waiver, policy) & unsound:
            state, text = "not judged", ""
        states.append(_state(waiver, state, cases))
        if text:
            reasons.append(incomplete(where, text, mend))
    for name, case in covered:
        made = next(one for one in legs if one.name == name)
        made.failing.pop(case, None)
        made.waived.add(case)
    return states, reasons


def _met(
    waiver: Waiver,
    number: int,
    legs: Sequence[Judged],
    today: date,
    suite: Suite,
    covered: dict[tuple[str, str], int],
) -> tuple[State, int, str, str]:
    """State, cases, and what to say of it; covers the cases that fail as expected."""
    about = [made for made in legs if waiver.leg == made.name or (not waiver.leg and made.leg.bits)]
    found = [
        (made, record)
        for made in about
        for record in meant(made.report.cases, waiver.query, suite, known(made.report, suite))
    ]
    if waiver.until < today:
        text = f"it expired: its last day was {waiver.until.isoformat()} ({waiver.issue})"
        return "expired", len(found), text, "mend what it is about, or decide anew and set another day"
    if not found:
        return "unmatched", 0, "it meets no case of any report", "remove it, or mend its query"
    passing = [record.id for made, record in found if not _fails(made, record)]
    if passing:
        return "wrong", len(found), f"now conforming: {cases(passing)}", "remove it, or narrow its query"
    other = [record for made, record in found if record.verdict != waiver.expect]
    if other:
        text = f"expected {waiver.expect} but got {other[0].verdict}: {cases([record.id for record in other])}"
        return "wrong", len(found), text, "look at the case anew, and state what is known of it"
    twice = [record.id for made, record in found if (made.name, record.id) in covered]
    if twice:
        return "wrong", len(found), f"another waiver covers it too: {cases(twice)}", "let one waiver be about a case"
    covered.update({(made.name, record.id): number for made, record in found})
    return "holds", len(found), "", ""


def _about(waiver: Waiver, policy: Policy) -> set[str]:
    return {name for name, leg in policy.legs.items() if waiver.leg == name or (not waiver.leg and leg.bits)}


def _fails(made: Judged, record: Record) -> bool:
    return record.id in made.failing or record.id in made.warned or record.verdict in INCOMPLETE


def _state(waiver: Waiver, state: State, cases: int) -> WaiverState:
    return WaiverState(
        query=waiver.query,
        leg=waiver.leg,
        expect=waiver.expect,
        until=waiver.until,
        issue=waiver.issue,
        reason=waiver.reason,
        state=state,
        cases=cases,
    )


def failures(made: Judged) -> list[Reason]:
    """One reason a way to fail, with the command that runs the first such case again."""
    found: dict[str, list[str]] = {}
    for case_id, how in made.failing.items():
        found.setdefault(how, []).append(case_id)
    replays = {record.id: record.replay for record in made.report.cases if record.id in made.failing}
    return [
        differs(
            made.name,
            f"{how}: {cases(ids)}",
            printed(replays[ids[0]], 400),
        )
        for how, ids in found.items()
    ]


def unmet(policy: Policy, met: set[int], unsound: Set[str] = frozenset()) -> list[Reason]:
    """Needs that no case of any report is about: they would hold nothing. None while a leg with bits is `unsound`."""
    if any(policy.legs[name].bits for name in unsound):
        return []
    return [
        incomplete(
            f"need {number + 1} ({need.query})", "it meets no case of any report", "mend its query, or remove it"
        )
        for number, need in enumerate(policy.needs)
        if number not in met
    ]
