"""The power of cases by their tags: each fails for the nearest wrong rule of what it says is odd about it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.mutation import nearest
from mlx_assay.conformance.mutation.nearest import ELSEWHERE, NEAREST, noticed
from mlx_assay.fixtures.kind import all_cases, kind_of, kinds

TAGS = [(operation, tag) for operation, tags in NEAREST.items() for tag in tags]


@pytest.mark.parametrize(("operation", "tag"), TAGS)
def test_each_case_of_a_tag_fails_for_its_nearest_wrong_rule(operation: str, tag: str) -> None:
    cases = [case for case in all_cases("quick") if case.operation == operation and tag in kind_of(case).tags]
    assert len(cases) > 20
    missed = [case for case in cases if not noticed(case, NEAREST[operation][tag])]
    listed = {kind for owner, name, kind in ELSEWHERE if (owner, name) == (operation, tag)}
    assert [case.id for case in missed if case.kind not in listed] == []
    # A reason for a kind whose cases all fail is stale.
    assert listed == {case.kind for case in missed}


def test_a_rule_that_is_right_is_noticed_by_no_case(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(case for case in all_cases("quick") if case.path == "argmax_given/float32/ties/levels")
    assert noticed(case, ["the last id on ties"])
    assert not noticed(case, ["a rule that no contract knows"])
    contract = contracts()["argmax_given"]
    right = contract.references[0].compute
    harmless = replace(contract, suspects=lambda arguments: {"right": lambda: np.asarray(right(arguments))})
    monkeypatch.setattr(nearest, "contracts", lambda: {"argmax_given": harmless})
    assert not noticed(case, ["right"])


def test_every_reason_is_for_a_kind_that_has_the_tag() -> None:
    for operation, tag, kind in ELSEWHERE:
        assert tag in kinds()[operation, kind].tags
        assert tag in NEAREST[operation]
    assert min(map(len, ELSEWHERE.values())) > 40
    assert set(NEAREST) <= set(contracts())
    assert nearest.tested("nothing") == {}
