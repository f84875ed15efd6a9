"""The policies of this project's workflows: they pass what is whole, and each leg that is not there fails them."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import msgspec
import pytest
import yaml
from sound import Gate, document, replaying, report

from mlx_assay.conformance.gating.policy import Policy
from mlx_assay.conformance.reporting.report import Implementation, Report
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE, Verdict

ROOT = Path(__file__).parents[2]
GATES = ROOT / "ci" / "gates"
WORKFLOWS = ROOT / ".github" / "workflows"
SMOKE = tuple(f"smoke-macos-{release}" for release in (14, 15, 26))
HOSTED = {"host": "host-x86_64", **dict.fromkeys(SMOKE, "paravirtual")}
QUERIES = ("normalized_argmax/bfloat16/ties/*", "argmax_given/bfloat16/ties/*")
LEGS = {"hosted": HOSTED, "device": {**HOSTED, "metal": "g16", "metal-validation": "g16"}}


def policy(name: str) -> Policy:
    return msgspec.toml.decode((GATES / f"{name}.toml").read_bytes(), type=Policy)


def brief(name: str) -> str:
    """A policy that asks the same of few cases: how many there must be is no matter of which legs."""
    text = (GATES / f"{name}.toml").read_text()
    text = re.sub(r"\[legs\.host\.least\]\n(.+\n)+", "", text)
    assert text.count("cases = 2500") == len(LEGS[name])
    return text.replace("cases = 2500", f"cases = 20\nqueries = {list(QUERIES)}")


@cache
def leg(name: str, device: str, differs: bool = False) -> Report:
    """A few cases as that leg would report them, one of them failing where asked for."""
    made = report(name, QUERIES, device=device)
    chosen = made.cases[0].id
    if differs:
        made = report(name, QUERIES, {chosen: Verdict.DIFFERS}, device=device)
    environment = msgspec.structs.replace(
        made.environment, packages=dict(policy("hosted").packages) | {"torch": "2.13.0"}
    )
    implementation = Implementation(name="mlx_assay.impl", operations=made.implementation.operations)
    return replaying(msgspec.structs.replace(made, environment=environment, implementation=implementation))


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys.readouterr)


@pytest.mark.parametrize("name", LEGS)
def test_a_gate_passes_all_its_legs_and_misses_each(name: str, gate: Gate) -> None:
    text = brief(name)
    whole = [leg(*one) for one in LEGS[name].items()]
    assert gate(*whole, policy=text) == EXIT_CONFORMS, gate.text
    lost = whole[-1]
    assert gate(*whole[:-1], policy=text) == EXIT_INCOMPLETE
    assert lost.leg in gate.text


def test_bits_count_on_a_chip_and_not_on_a_virtual_one(gate: Gate) -> None:
    text = brief("device")
    legs = LEGS["device"].items()
    smoke = [leg(name, device, name in SMOKE) for name, device in legs]
    assert gate(*smoke, policy=text) == EXIT_CONFORMS, gate.text
    chip = [leg(name, device, name == "metal") for name, device in legs]
    assert gate(*chip, policy=text) == EXIT_DIFFERS
    virtual = [leg(name, "paravirtual" if name == "metal" else device) for name, device in legs]
    assert gate(*virtual, policy=text) == EXIT_INCOMPLETE


def test_a_report_of_another_commit_is_no_leg(gate: Gate) -> None:
    text = brief("hosted")
    whole = [leg(*one) for one in HOSTED.items()]
    stale = document(whole[0])
    stale["source"]["commit"] = "f" * 40
    assert gate(stale, *whole[1:], policy=text) == EXIT_INCOMPLETE


def test_policies_know_the_legs_of_the_workflows() -> None:
    ci = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]
    images = ci["smoke"]["strategy"]["matrix"]["image"]
    device = [one["leg"] for one in ci["device"]["strategy"]["matrix"]["include"]]
    assert list(policy("hosted").legs) == ["host", *(f"smoke-{image}" for image in images)]
    assert list(policy("device").legs) == [*policy("hosted").legs, *device]
    chosen = ci["gate"]["steps"][-1]["with"]["policy"]
    assert all(f"ci/gates/{name}.toml" in chosen for name in LEGS)


def test_policies_ask_for_the_references_that_are_pinned() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "ci" / "constraints.txt").read_text().split())
    own = tomllib.loads((ROOT / "ci" / "gate.toml").read_text())
    for name in (*LEGS, "nightly"):
        asked = policy(name)
        assert {package: told.lstrip("=") for package, told in asked.packages.items()} == {
            package: pinned[package] for package in asked.packages
        }
        assert asked.packages == own["packages"]
        assert [need.query for need in asked.needs] == [need["query"] for need in own["needs"]]
        assert asked.commit
        assert not asked.dirty
    assert policy("hosted").legs["host"] == msgspec.convert(
        own["legs"]["host"], type=type(policy("hosted").legs["host"])
    )


def test_a_night_asks_for_fresh_cases_of_the_full_tier() -> None:
    nightly = policy("nightly").legs["host"]
    assert (nightly.tier, nightly.seed, nightly.bits) == ("full", "nonzero", True)
    shards = yaml.safe_load((WORKFLOWS / "nightly.yml").read_text())["jobs"]["full"]["strategy"]["matrix"]["shard"]
    assert shards == [f"{index}/{len(shards)}" for index in range(1, len(shards) + 1)]


def test_a_release_is_held_against_our_own_policy_with_all_mutants() -> None:
    jobs = yaml.safe_load((WORKFLOWS / "release.yml").read_text())["jobs"]
    given = jobs["gate"]["steps"][-1]["with"]
    assert given["policy"] == "ci/gate.toml"
    assert given["mutants"].endswith("/mutants.json")
    (planted,) = (step for step in jobs["mutants"]["steps"] if step.get("run") == "ci/steps/mutants")
    assert not {"SINCE", "SHARD"} & set(planted["env"])
    assert list(tomllib.loads((ROOT / "ci" / "gate.toml").read_text())["legs"]) == ["host"]
    assert jobs["host"]["steps"][-1]["with"]["leg"] == "host"


def test_changed_kernels_are_judged_in_every_part() -> None:
    job = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]["mutants"]
    parts = job["strategy"]["matrix"]["shard"]
    assert parts == [f"{index}/{len(parts)}" for index in range(1, len(parts) + 1)]
