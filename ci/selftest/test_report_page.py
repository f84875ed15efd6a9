"""The page of a report: what it shows, what it holds back, and that nothing in it is taken for markup."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mlx_assay.conformance.rendering.page import LARGEST, page

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
from report_rendering import report


@pytest.mark.parametrize("failing", [0, 3, 200])
def test_a_page_stays_small(failing: int) -> None:
    made = page(report(10_000, failing))
    assert len(made.encode()) <= LARGEST
    assert made.count('<details class="case') == failing
