"""The power of cases by their tags: each fails for the nearest wrong rules of what it says is odd about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.mutation.nearest import trial
from mlx_assay.conformance.mutation.nearest.particular import PARTICULAR, particular
from mlx_assay.conformance.mutation.nearest.reasons import REASONS
from mlx_assay.conformance.mutation.nearest.table import NEAREST, RAISES, Groups, tags_of
from mlx_assay.conformance.mutation.nearest.trial import Wrong, missed, suspected
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import Kind, all_cases, kind_of, kinds

OWN = ""
"""In the place of a tag: what a kind hunts by its own reason."""


def held(case: Case) -> Iterator[tuple[str, Groups]]:
    """The tags to which a case is held, and their groups of wrong rules."""
    yield from ((tag, NEAREST[case.operation][tag]) for tag in tags_of(case) if tag in NEAREST[case.operation])
    yield from ((OWN, one.groups) for one in particular(kind_of(case)))


@pytest.mark.parametrize("operation", sorted(contracts()))
def test_each_case_fails_for_the_nearest_wrong_rules_of_its_tags(operation: str) -> None:
    count: Counter[tuple[str, str]] = Counter()
    silent: dict[tuple[str, str], list[str]] = defaultdict(list)
    for case in all_cases("quick"):
        for tag, groups in held(case) if case.operation == operation else ():
            count[tag, case.kind] += 1
            if left := missed(case, groups):
                silent[tag, case.kind].append(f"{case.id}: {' or '.join(rule.name for rule in left[0])}")
    assert sum(count.values()) >= 5
    reasons = {(tag, kind): reason for (owner, tag, kind), reason in REASONS.items() if owner == operation}
    assert {key: told for key, told in silent.items() if key not in reasons} == {}
    # A reason for cases that all fail is stale, and so is one for all where some do.
    assert {key: reason.all for key, reason in reasons.items()} == {
        key: len(told) == count[key] for key, told in silent.items()
    }


def test_every_kind_is_held_to_something() -> None:
    free = [f"{kind.operation}/{kind.name}" for kind in kinds().values() if not _bound(kind)]
    assert free == []


def _bound(kind: Kind) -> bool:
    return bool({RAISES, *NEAREST[kind.operation]} & set(kind.tags)) or any(particular(kind))


def test_every_rule_of_a_kind_has_one() -> None:
    for one in PARTICULAR:
        for name in one.kinds:
            assert any(one == found for kind in kinds().values() for found in particular(kind)), name
    assert set(NEAREST) == set(contracts())


def test_a_rule_that_is_right_is_noticed_by_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in all_cases("quick") if case.path == "argmax_given/float32/ties/levels")
    last = suspected("the last id on ties")
    right = Wrong("what is right", lambda trial: iter([trial.right]))
    assert missed(case, ((last,),)) == []
    assert missed(case, ((right, last),)) == []
    assert missed(case, ((last,), (right,))) == [(right,)]
    assert missed(case, ((suspected("a rule that no contract knows"),),)) != []
    contract = contracts()["argmax_given"]
    compute = contract.references[0].compute
    harmless = replace(contract, suspects=lambda arguments: {"right": lambda: np.asarray(compute(arguments))})
    monkeypatch.setattr(trial, "contracts", lambda: {"argmax_given": harmless})
    assert missed(case, ((suspected("right"),),)) != []


def test_a_case_whose_calls_all_raise_is_held_to_nothing() -> None:
    case = next(case for case in all_cases("quick") if case.path == "argmax_given/float32/error/empty")
    assert missed(case, ((Wrong("anything", lambda trial: iter(())),),)) == []


def test_every_reason_is_for_a_kind_that_has_the_tag() -> None:
    for (operation, tag, kind), reason in REASONS.items():
        assert tag == OWN or tag in kinds()[operation, kind].tags
        assert len(reason.text) > 40
