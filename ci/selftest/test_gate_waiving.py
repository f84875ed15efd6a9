"""Waivers, needs and coverage, asked directly: which cases fail, which are waived, and which are missing or beyond."""

from __future__ import annotations

from datetime import date
from typing import Any

import msgspec
import pytest
from sound import FAILING, QUERY, ids, report

from mlx_assay.conformance.gating import coverage
from mlx_assay.conformance.gating.coverage import EDITED, complete, covered, known
from mlx_assay.conformance.gating.policy import SCHEMA, Leg, Need, Policy, Waiver
from mlx_assay.conformance.gating.reason import differs, incomplete
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.gating.waiving import Judged, failures, judged, unmet, waive
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verdict import INCOMPLETE, Verdict

SUITE = Suite()
LEG = Leg(implementation="kernels", device_class=["host-*"], executor="host", cases=20, queries=[QUERY])
SMOKE = msgspec.structs.replace(LEG, bits=False)
FIRST, SECOND, THIRD, FOURTH = ids()[:4]
ALL = len(ids())
TODAY = date(2026, 6, 1)
PLAIN: dict[str, Any] = {"reason": "known since June", "issue": "https://example.org/issues/1", "until": TODAY}


def policy(**fields: Any) -> Policy:
    legs = fields.pop("legs", {"host": LEG, "smoke": SMOKE})
    return Policy(schema=SCHEMA, age_hours=24, legs=legs, **fields)


def made(name: str = "host", verdicts: dict[str, Verdict] | None = None, leg: Leg = LEG, **fields: Any) -> Judged:
    return judged(name, leg, report(name, verdicts=verdicts), policy(**fields), SUITE, set())


def waiver(query: str, expect: Any = "differs", **fields: Any) -> Waiver:
    return Waiver(query=query, expect=expect, **{**PLAIN, **fields})


@pytest.mark.parametrize("verdict", Verdict)
def test_which_verdicts_fail(verdict: Verdict) -> None:
    bits, smoke = made(verdicts={FIRST: verdict}), made("smoke", {FIRST: verdict}, SMOKE)
    failing = {FIRST: str(verdict)} if verdict in FAILING else {}
    assert (bits.name, bits.leg, bits.failing, bits.waived, bits.warned) == ("host", LEG, failing, set(), set())
    warned = {FIRST} if verdict is Verdict.DIFFERS else set()
    assert (smoke.failing, smoke.warned) == ({} if warned else failing, warned)
    assert len(bits.report.cases) == ALL


def need(query: str = QUERY, verdict: Any = "same-bits", device: list[str] | None = None) -> Need:
    return Need(query=query, verdict=verdict, device_class=device or [])


def weaker(*verdicts: Verdict) -> Report:
    """A report whose first cases conform on weaker rungs."""
    whole = report()
    cases = [msgspec.structs.replace(case, verdict=one) for case, one in zip(whole.cases, verdicts, strict=False)]
    return msgspec.structs.replace(whole, cases=[*cases, *whole.cases[len(cases) :]])


def test_needs_are_held_against_what_conforms() -> None:
    given = weaker(Verdict.SAME_VALUE, Verdict.WITHIN_ULP, Verdict.SAME_BITS)

    def failing(leg: Leg, *needs: Need, met: set[int] | None = None) -> dict[str, str]:
        return judged("host", leg, given, policy(needs=list(needs)), SUITE, set() if met is None else met).failing

    first, second = "same-value where {} is needed", "within-ulp where {} is needed"
    assert failing(LEG, need()) == {FIRST: first.format("same-bits"), SECOND: second.format("same-bits")}
    assert failing(LEG, need(verdict="same-value")) == {SECOND: second.format("same-value")}
    assert failing(LEG, need(verdict="within-ulp")) == {}
    assert failing(LEG, need(FIRST)) == {FIRST: first.format("same-bits")}
    # Of two needs that a case misses the first is told.
    assert failing(LEG, need(SECOND, "same-value"), need(SECOND)) == {SECOND: second.format("same-value")}
    assert failing(SMOKE, need()) == {}
    for device, fits in ((["host-*"], True), (["g16"], False), (["g16", "host-x86_64"], True)):
        assert bool(failing(LEG, need(device=device))) is fits
    met: set[int] = set()
    failing(LEG, need("apply_token_bitmask"), need(), need(device=["g16"]), need(THIRD, "within-ulp"), met=met)
    assert met == {1, 3}
    crashed = judged("host", LEG, report(verdicts={FIRST: Verdict.CRASHED}), policy(needs=[need()]), SUITE, set())
    assert crashed.failing == {FIRST: "crashed"}


def test_needs_that_nothing_is_about() -> None:
    asked = policy(needs=[need("apply_token_bitmask"), need()])
    words = ("it meets no case of any report", "mend its query, or remove it")
    assert unmet(asked, {1}) == [incomplete("need 1 (apply_token_bitmask)", *words)]
    assert unmet(asked, {0}) == [incomplete(f"need 2 ({QUERY})", *words)]
    assert unmet(asked, {0, 1}) == []
    assert unmet(asked, set(), {"host"}) == []
    assert len(unmet(asked, set(), {"smoke"})) == 2


def test_a_waiver_moves_cases_from_failing_to_waived() -> None:
    leg = made(verdicts={FIRST: Verdict.DIFFERS, SECOND: Verdict.CRASHED})
    asked = policy(waivers=[waiver(FIRST), waiver(SECOND, "crashed")])
    states, reasons = waive(asked, [leg], TODAY, SUITE)
    assert [(one.query, one.state, one.cases, one.expect) for one in states] == [
        (FIRST, "holds", 1, "differs"), (SECOND, "holds", 1, "crashed"),
    ]  # fmt: skip
    assert [(one.leg, one.until, one.issue, one.reason) for one in states] == [
        ("", TODAY, "https://example.org/issues/1", "known since June")
    ] * 2
    assert (reasons, leg.failing, leg.waived) == ([], {}, {FIRST, SECOND})


def state(legs: list[Judged], *waivers: Waiver, today: date = TODAY, unsound: frozenset[str] = frozenset()) -> Any:
    """State and cases of each waiver, and what is told."""
    states, reasons = waive(policy(waivers=list(waivers)), legs, today, SUITE, unsound)
    return [(one.state, one.cases) for one in states], [(one.where, one.text, one.mend) for one in reasons]


def test_a_waiver_that_does_not_hold() -> None:
    failing = {FIRST: Verdict.DIFFERS, SECOND: Verdict.DIFFERS, THIRD: Verdict.CRASHED}
    day = date(2026, 6, 2)
    expired = state([made(verdicts=failing)], waiver(FIRST), today=day)
    assert expired == (
        [("expired", 1)],
        [
            (
                f"waiver 1 ({FIRST})",
                "it expired: its last day was 2026-06-01 (https://example.org/issues/1)",
                "mend what it is about, or decide anew and set another day",
            )
        ],
    )
    assert state([made(verdicts=failing)], waiver(FIRST))[0] == [("holds", 1)]
    none = state([made(verdicts=failing)], waiver(FIRST), waiver("apply_token_bitmask"))
    assert none == (
        [("holds", 1), ("unmatched", 0)],
        [("waiver 2 (apply_token_bitmask)", "it meets no case of any report", "remove it, or mend its query")],
    )
    passing = state([made(verdicts=failing)], waiver(FOURTH))
    assert passing == (
        [("wrong", 1)],
        [(f"waiver 1 ({FOURTH})", f"now conforming: 1 case, {FOURTH}", "remove it, or narrow its query")],
    )
    other = state([made(verdicts=failing)], waiver(THIRD))
    assert other == (
        [("wrong", 1)],
        [
            (
                f"waiver 1 ({THIRD})",
                f"expected differs but got crashed: 1 case, {THIRD}",
                "look at the case anew, and state what is known of it",
            )
        ],
    )
    leg = made(verdicts=failing)
    twice = state([leg], waiver(FIRST), waiver(FIRST))
    assert twice == (
        [("holds", 1), ("wrong", 1)],
        [
            (
                f"waiver 2 ({FIRST})",
                f"another waiver covers it too: 1 case, {FIRST}",
                "let one waiver be about a case",
            )
        ],
    )
    assert leg.failing == {SECOND: "differs", THIRD: "crashed"}


def test_which_legs_a_waiver_is_about() -> None:
    failing = {FIRST: Verdict.DIFFERS}

    def legs() -> list[Judged]:
        return [made(verdicts=failing), made("smoke", failing, SMOKE)]

    both = legs()
    assert state(both, waiver(FIRST))[0] == [("holds", 1)]
    assert ([one.waived for one in both], both[1].warned) == ([{FIRST}, set()], {FIRST})
    smoke = legs()
    assert state(smoke, waiver(FIRST, leg="smoke"))[0] == [("holds", 1)]
    assert [one.waived for one in smoke] == [set(), {FIRST}]
    assert smoke[0].failing == {FIRST: "differs"}
    assert state(legs(), waiver(FIRST, leg="smoke"), waiver(FIRST, leg="host"))[0] == [("holds", 1)] * 2
    for unsound, name, found in (
        ({"host"}, "", "not judged"), ({"smoke"}, "", "unmatched"), ({"smoke"}, "smoke", "not judged"),
        ({"host"}, "smoke", "unmatched"), ({"host"}, "host", "not judged"),
    ):  # fmt: skip
        states, reasons = state([], waiver(FIRST, leg=name), unsound=frozenset(unsound))
        assert states == [(found, 0)]
        assert len(reasons) == (found == "unmatched")
    # One that meets cases in a sound leg is judged by these.
    assert state(legs()[:1], waiver(FIRST), unsound=frozenset({"host"}))[0] == [("holds", 1)]


@pytest.mark.parametrize("verdict", sorted(INCOMPLETE))
def test_what_was_not_judged_is_never_waived(verdict: Verdict) -> None:
    leg = made(verdicts={FIRST: verdict})
    states, ((_, text, _),) = state([leg], waiver(FIRST))
    assert (states, text) == ([("wrong", 1)], f"expected differs but got {verdict}: 1 case, {FIRST}")
    assert (leg.failing, leg.waived) == ({}, set())


def test_failures_are_told_once_a_way() -> None:
    leg = made(verdicts={FIRST: Verdict.DIFFERS, SECOND: Verdict.CRASHED, THIRD: Verdict.DIFFERS})
    replay = "mlx-assay replay '{}' --implementation kernels"
    assert failures(leg) == [
        differs("host", f"differs: 2 cases, {FIRST}, {THIRD}", replay.format(FIRST)),
        differs("host", f"crashed: 1 case, {SECOND}", replay.format(SECOND)),
    ]
    assert failures(made()) == []


def lacking(given: Report, leg: Leg = LEG) -> list[tuple[str, str]]:
    found = covered(given, leg, "host", SUITE)
    assert all(one == incomplete("host", one.text, one.mend) for one in found)
    return [(one.text, one.mend) for one in found]


def test_cases_are_counted() -> None:
    whole = report()
    assert lacking(whole) == lacking(whole, msgspec.structs.replace(LEG, cases=ALL)) == []
    assert lacking(whole, msgspec.structs.replace(LEG, cases=ALL + 1)) == [
        (f"expected at least {ALL + 1} cases but got {ALL}", "run the whole tier")
    ]
    few = msgspec.structs.replace(LEG, least={FIRST: 1, QUERY: ALL})
    assert lacking(whole, few) == []
    more = msgspec.structs.replace(LEG, least={FIRST: 2, QUERY: ALL + 1})
    assert lacking(whole, more) == [
        (f"expected at least 2 cases of {FIRST} but got 1", "run them too"),
        (f"expected at least {ALL + 1} cases of {QUERY} but got {ALL}", "run them too"),
    ]


def test_the_cases_are_those_of_the_selection() -> None:
    whole = report()

    def holding(*cases: Any) -> list[tuple[str, str]]:
        return lacking(msgspec.structs.replace(whole, cases=list(cases)))

    assert holding(*whole.cases[1:]) == [(f"missing of its selection: 1 case, {FIRST}", "run them too")]
    assert holding(*whole.cases[1:], whole.cases[0]) == [("its cases are not in the order of its selection", EDITED)]
    other = report(queries=["normalized_argmax/float32/ties/tile"]).cases[0]
    assert holding(*whole.cases, other) == [(f"not of its selection: 1 case, {other.id}", EDITED)]
    assert holding(*whole.cases[1:], other) == [
        (f"missing of its selection: 1 case, {FIRST}", "run them too"),
        (f"not of its selection: 1 case, {other.id}", EDITED),
    ]
    lies = msgspec.structs.replace(whole.cases[0], why="Because.")
    ((text, mend),) = holding(lies, *whole.cases[1:])
    assert (text.endswith(f": 1 case, {FIRST}"), mend) == (True, EDITED)
    asked = msgspec.structs.replace(whole.selection, not_asked=["logit_softcap"])
    assert lacking(msgspec.structs.replace(whole, selection=asked)) == [
        ("the operations that it did not ask are not those that the implementation lacks", EDITED)
    ]
    nothing = msgspec.structs.replace(whole.selection, queries=["no_such_operation"])
    ((text, mend),) = lacking(msgspec.structs.replace(whole, selection=nothing))
    assert (text.startswith("this suite selects nothing for what it asks: "), mend) == (True, EDITED)


def test_fixtures_that_are_not_known_are_not_looked_into() -> None:
    whole = report()
    assert known(whole, SUITE)
    assert whole.suite is not None
    for suite in (None, msgspec.structs.replace(whole.suite, fixtures="0" * 64)):
        strange = msgspec.structs.replace(whole, suite=suite, cases=whole.cases[1:])
        assert not known(strange, SUITE)
        assert complete(strange, "host", SUITE) == lacking(strange) == []
    assert len(complete(msgspec.structs.replace(whole, cases=whole.cases[1:]), "host", SUITE)) == 1
    assert [one.id for one in coverage.meant(whole.cases, FIRST, SUITE, True)] == [FIRST]
