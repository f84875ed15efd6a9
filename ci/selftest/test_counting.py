"""A number and its noun."""

from __future__ import annotations

import pytest

from mlx_assay.conformance.counting import counted


@pytest.mark.parametrize(
    ("count", "told"), [(0, "0 launches"), (1, "1 launch"), (2, "2 launches"), (12345, "12,345 launches")]
)
def test_a_noun_goes_with_its_number(count: int, told: str) -> None:
    assert counted(count, "launch", "launches") == told


def test_most_nouns_take_an_s() -> None:
    assert (counted(1, "case"), counted(3, "case")) == ("1 case", "3 cases")
