"""How many cases and mutants this project's policies ask for: nearly all that there are, of every operation."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mlx_assay.conformance.gating.policy import Leg, Policy
from mlx_assay.conformance.mutation.mutant import all_mutants
from mlx_assay.conformance.query import Query
from mlx_assay.conformance.selection import operations, select, tags_of
from mlx_assay.fixtures.kind import kinds

CI = Path(__file__).parents[1]
POLICIES = sorted([CI / "gate.toml", *(CI / "gates").glob("*.toml")])
SHARE = 0.9
"""Of what is listed: a policy that asks for less passes a run that lost a tenth of it."""
DAY = 26113000
"""A seed as a night draws it."""


def policy(path: Path) -> Policy:
    return msgspec.toml.decode(path.read_bytes(), type=Policy)


def unfit(asked: int, listed: int) -> bool:
    return not int(SHARE * listed) <= asked <= listed


def faults(leg: Leg, whole: bool) -> list[str]:
    """What a leg asks for that is too little, or more than there is; a `whole` one asks for every operation."""
    seed = DAY if leg.seed == "nonzero" else leg.seed
    assert isinstance(seed, int)
    cases = select(leg.queries, leg.tier, seed).cases
    asked = {"cases": (leg.cases, len(cases))}
    for text, least in leg.least.items():
        query = Query.parse(text)
        asked[text] = (least, sum(query.matches(case, tags_of(case)) for case in cases))
    missing = [f"{name} has none" for name in operations() if whole and name not in leg.least]
    return [f"{name} = {least} of {count}" for name, (least, count) in asked.items() if unfit(least, count)] + missing


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_a_policy_asks_for_nearly_all_that_is_listed(path: Path) -> None:
    legs = policy(path).legs
    assert "host" in legs
    assert [told for name, leg in legs.items() for told in faults(leg, name == "host")] == []


def test_a_policy_asks_for_nearly_all_mutants() -> None:
    (asked,) = filter(None, (policy(path).mutants for path in POLICIES))
    count = len(all_mutants())
    assert not unfit(asked.least, count), f"least = {asked.least} of {count} mutants"
    assert sorted(asked.operations) == operations()


def test_too_little_and_too_much_are_told() -> None:
    (operation, name), kind = min(kinds().items())
    path = f"{operation}/{kind.dtypes[0]}/{name}"
    count = len(select([path]).cases)
    plain = Leg(implementation="x", device_class=["*"], executor="host", queries=[path], cases=count)
    assert faults(plain, False) == []
    assert f"{operation} has none" in faults(plain, True)
    assert faults(msgspec.structs.replace(plain, cases=count + 1), False) == [f"cases = {count + 1} of {count}"]
    more = msgspec.structs.replace(plain, least={operation: count + 1})
    assert faults(more, False) == [f"{operation} = {count + 1} of {count}"]
    assert f"{operation} has none" not in faults(more, True)
    assert unfit(89, 100)
    assert not unfit(90, 100)
