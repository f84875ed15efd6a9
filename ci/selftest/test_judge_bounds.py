"""Twins where each place has a distance of its own."""

from __future__ import annotations

import numpy as np
from played import Shelf, subcase

from mlx_assay.conformance.judging.panel import Expected
from mlx_assay.conformance.judging.power import powerless_twin
from mlx_assay.conformance.verdict import Verdict

SHELF = Shelf(right=lambda x: x + x)


def test_a_twin_is_held_to_the_distance_of_each_place() -> None:
    rows = [subcase(1, 2, 3), subcase(4, 5, 6)]
    near = [np.nextafter(np.array(row, np.float32), np.float32(9)) for row in ((1, 2, 3), (4, 5, 6))]

    def twin(*ulps: int) -> str | None:
        reference = SHELF.reference("right", Verdict.WITHIN_ULP)
        return powerless_twin(rows, [[Expected(reference, one, np.array(ulps, np.int64))] for one in near], ())

    assert twin(1, 1, 1) == "the input itself"
    assert twin(1, 1, 0) is None
    assert twin(0, 1, 1) is None
    assert twin(1) == "the input itself"
