"""Presence: of each thing that a policy expects of a report, the value that is enough and the next one that is not."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from sound import COMMIT, NOW, QUERY, report

from mlx_assay.conformance.gating import presence
from mlx_assay.conformance.gating.policy import SCHEMA, Leg, Policy, Rules
from mlx_assay.conformance.gating.reason import incomplete
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.reporting.report import Executor, Report
from mlx_assay.conformance.reporting.report import Suite as Judging

SUITE = Suite()
MADE = report()
LEG = Leg(implementation="kernels", device_class=["host-*"], executor="host", cases=1, queries=[QUERY])
POLICY = Policy(schema=SCHEMA, age_hours=24, legs={"host": LEG}, packages={"mlx": "==0.32.*"})


def changed(**fields: Any) -> Report:
    """The sound report, with other values; of a struct in it, by its own fields."""
    made: dict[str, Any] = {}
    for name, value in fields.items():
        made[name] = msgspec.structs.replace(getattr(MADE, name), **value) if isinstance(value, dict) else value
    return msgspec.structs.replace(MADE, **made)


def told(
    made: Report, leg: dict[str, Any] | None = None, policy: dict[str, Any] | None = None, commit: str = COMMIT
) -> list[tuple[str, str]]:
    """What is told of it, with what mends it."""
    asked = msgspec.structs.replace(LEG, **(leg or {}))
    rules = msgspec.structs.replace(POLICY, **(policy or {}))
    found = presence.present(made, rules, asked, "here", datetime.fromisoformat(NOW), commit, SUITE)
    assert all(one == incomplete("here", one.text, one.mend) for one in found)
    return [(one.text, one.mend) for one in found]


def test_a_sound_report_is_as_expected() -> None:
    assert told(MADE) == []
    assert told(MADE, commit="") == []


def test_the_age_is_that_of_the_leg_where_it_has_one() -> None:
    assert told(MADE, {"age_hours": 1}) == []
    assert told(changed(started="2026-06-01T10:30:00+00:00"), {"age_hours": 1})[0][0].startswith(
        "it is older than 1 hours"
    )
    assert told(changed(started="2026-05-31T10:30:00+00:00"), {"age_hours": 48}) == []


def test_the_commit_and_that_nothing_was_changed() -> None:
    other = "f" * 40
    assert told(MADE, commit=other) == [(f"expected commit {other} but it is of {COMMIT}", "run it there")]
    assert told(changed(source={"commit": ""})) == [(f"expected commit {COMMIT} but it is of none", "run it there")]
    dirty = changed(source={"dirty": True})
    assert told(dirty) == [("files differed from the commit when it ran", "run it in a clean checkout")]
    assert told(dirty, policy={"dirty": True}) == []


def test_the_suite_that_judged() -> None:
    installed = SUITE.installed
    assert told(changed(suite=None)) == [("it does not tell which suite judged", "run it with a suite that does")]
    strange = {"version": "0", "fixtures": "1" * 64, "judge": "2" * 64}
    again = "run with that suite"
    assert told(changed(suite=strange)) == [
        (f"expected version =={installed.version} of the suite but got '0'", again),
        (f"expected digest {installed.fixtures} of the fixtures but got '{'1' * 64}'", again),
        (f"expected digest {installed.judge} of the judge but got '{'2' * 64}'", again),
    ]
    for name in ("fixtures", "judge"):
        made = changed(suite={name: "3" * 64})
        assert len(told(made)) == 1
        assert told(made, policy={"suite": Rules(**{name: "any"})}) == []
        assert told(made, policy={"suite": Rules(**{name: "3" * 64})}) == []
        assert told(MADE, policy={"suite": Rules(**{name: "3" * 64})}) == [
            (f"expected digest {'3' * 64} of the {name} but got '{getattr(installed, name)}'", again)
        ]
    old = changed(suite={"version": "0.1.7"})
    assert told(old, policy={"suite": Rules(version="==0.1.*")}) == []
    assert told(old, policy={"suite": Rules(version=">=0.2")})[0][0].startswith("expected version >=0.2 of the suite")
    assert isinstance(installed, Judging)


def test_the_device_and_the_executor() -> None:
    wrong = changed(environment={"device_class": "g16"})
    assert told(wrong) == [("expected device class host-* but got g16", "run it on such a device")]
    assert told(wrong, {"device_class": ["g13*", "g16"]}) == []
    assert told(changed(environment={"device_class": ""}), {"device_class": ["*", "g1"]}) == [
        ("expected device class * or g1 but got none", "run it on such a device")
    ]
    hosted = changed(environment={"device_class": "paravirtual"})
    bits = ("a paravirtual device has no bits to rely on", "run it on real hardware, or make the leg smoke")
    assert told(hosted, {"device_class": ["para*"]}) == [bits]
    assert told(hosted, {"device_class": ["para*"], "bits": False}) == []
    assert told(MADE, {"bits": False}) == []
    assert told(MADE, {"executor": "metal"}) == [("expected executor metal but got host", "run it there")]
    assert told(changed(executor={"name": ""})) == [("expected executor host but got none", "run it there")]


def test_kernels_that_ran_under_the_checker() -> None:
    def with_launches(launches: int, checked: str) -> Report:
        cases = [msgspec.structs.replace(MADE.cases[0], launches=launches), *MADE.cases[1:]]
        return changed(cases=cases, executor=Executor(name="host", details={"checked": checked}))

    assert told(with_launches(1, "yes"), {"checked": True}) == []
    for made, count in ((with_launches(0, "yes"), "0 launches"), (with_launches(1, "no"), "1 launch")):
        assert told(made, {"checked": True}) == [
            (f"its kernels did not run under the checker ({count} did)", "run it with --checked")
        ]
        assert told(made) == []
    assert len(told(MADE, {"checked": True})) == 1


def test_what_was_asked_for() -> None:
    assert told(MADE, {"implementation": "other"}) == [
        ("expected implementation other but got 'kernels'", "judge that one")
    ]
    assert told(changed(selection={"tier": "full"})) == [
        ("expected tier quick but got 'full'", "run it with --tier quick")
    ]
    assert told(MADE, {"tier": "full"}) == [("expected tier full but got 'quick'", "run it with --tier full")]
    for seed, asked, fits in ((0, 0, True), (7, 7, True), (7, 0, False), (0, 7, False), (0, "nonzero", False)):
        found = told(changed(selection={"seed": seed}), {"seed": asked})
        assert found == ([] if fits else [(f"expected seed {asked} but got {seed}", "run it with that --seed")])
    for seed, asked in ((1, "nonzero"), (9, "nonzero"), (0, "any"), (3, "any")):
        assert told(changed(selection={"seed": seed}), {"seed": asked}) == []


def test_the_queries_in_any_order() -> None:
    two = ["b/*", "a/*"]
    assert told(changed(selection={"queries": two}), {"queries": two[::-1]}) == []
    assert told(changed(selection={"queries": two}), {"queries": ["a/*"]}) == [
        ("expected queries a/* but got b/*, a/*", "ask for these")
    ]
    assert told(changed(selection={"queries": two}), {"queries": []}) == [
        ("expected queries none: the whole tier but got b/*, a/*", "ask for these")
    ]
    assert told(changed(selection={"queries": []})) == [(f"expected queries {QUERY} but got none", "ask for these")]
    assert told(changed(selection={"queries": []}), {"queries": []}) == []


def test_what_was_left_out() -> None:
    fewer = changed(selection={"without": ["torch-reference", "stock-mlx"]})
    assert told(fewer) == [
        ("oracles were left out: stock-mlx, torch-reference", "run with them, or allow it by without = [...]")
    ]
    assert told(fewer, {"without": ["torch-reference"]})[0][0] == "oracles were left out: stock-mlx"
    assert told(fewer, {"without": ["stock-mlx", "torch-reference", "numpy-reference"]}) == []
    lacking = changed(selection={"not_asked": ["b", "a"]})
    assert told(lacking) == [
        (
            "operations that the implementation lacks were not asked: a, b",
            "implement them, or allow it by not_asked = [...]",
        )
    ]
    assert told(lacking, {"not_asked": ["a"]})[0][0].endswith("were not asked: b")
    assert told(lacking, {"not_asked": ["a", "b", "c"]}) == []


def test_packages_of_the_policy_and_of_the_leg() -> None:
    assert told(MADE, policy={"packages": {"mlx": "==0.31.*"}}) == [
        ("expected mlx ==0.31.* but got 0.32.4", "pip install 'mlx==0.31.*'")
    ]
    assert told(MADE, {"packages": {"mlx": "0.32.4"}}) == []
    assert told(MADE, {"packages": {"mlx": "0.32.5"}}) == [
        ("expected mlx 0.32.5 but got 0.32.4", "pip install 'mlx===0.32.5'")
    ]
    assert told(MADE, {"packages": {"xgrammar": ">=0.1"}}) == [
        ("package xgrammar >=0.1 is needed but it is not there", "pip install 'xgrammar>=0.1'")
    ]
    assert told(MADE, {"allowed": {"xgrammar": ">=0.1", "torch": ">=2"}}) == []
    assert told(MADE, {"allowed": {"torch": ">=3"}}) == [
        ("expected torch >=3 but got 2.13.0", "pip install 'torch>=3'")
    ]
    assert told(MADE, policy={"allowed": {"Torch": ">=3"}}, leg={"allowed": {"Torch": ">=2"}}) == []
    # What is needed decides where both name it.
    assert told(MADE, {"packages": {"torch": ">=2"}, "allowed": {"torch": ">=3"}}) == []
    assert told(changed(environment={"packages": {"MLX": "0.32.4"}})) == []


@pytest.mark.parametrize(
    ("version", "rule", "keeps"),
    [
        ("1.2.3", "==1.2.3", True), ("1.2.3", "==1.2.4", False), ("1.3rc1", ">=1.2", True), ("1.3rc1", ">=1.3", False),
        ("1.2.3", "~=1.2", True), ("2.0", "~=1.2", False), ("1.0+cpu", "===1.0+cpu", True),
        ("1.0", "===1.0+cpu", False),
        ("none", ">=0", False), ("1.0", "newest", False), ("", ">=0", False), ("1.0", "", True),
    ],
)  # fmt: skip
def test_a_version_keeps_to_a_rule(version: str, rule: str, keeps: bool) -> None:
    assert presence.satisfies(version, rule) is keeps


def test_rules_that_can_be_meant() -> None:
    for rule in ("0.32.4", "1", "1.0+cpu", ">=0.32", "==0.32.*", ">=1,<2", "!=1.5", "~=2.1", "===1.0"):
        presence.check(rule)
    for rule in ("newest", "", ">=", "=>1", "1.x", ">=a", "= 1"):
        with pytest.raises(ValueError, match=r"Expected a version, as 0\.32\.4, or a specifier, as >=0\.32, but got"):
            presence.check(rule)
    assert [presence.pinned(rule) for rule in ("1.0", "==1.0", ">1", "<1", "~=1", "!=1")] == [
        "===1.0", "==1.0", ">1", "<1", "~=1", "!=1",
    ]  # fmt: skip
    assert presence.canonical("Mlx_Assay.x") == "mlx-assay-x"
