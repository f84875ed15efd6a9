"""Every selected case as one pytest item, whose id is the case's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mlx_assay.conformance import worker
from mlx_assay.conformance.quotation import passage

if TYPE_CHECKING:
    from mlx_assay.conformance.process.implementation import Implementation
    from mlx_assay.fixtures.case import Case


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", worker.parameters(metafunc.config))


@pytest.fixture(scope="session")
def implementation(pytestconfig: pytest.Config) -> Implementation:
    """The process that runs what is judged, one a worker."""
    return worker.implementation(pytestconfig)


def test_mlx_assay(case: Case, implementation: Implementation, request: pytest.FixtureRequest) -> None:
    """Judges one case; the record travels as a property of the item."""
    record = worker.judged(case, implementation, request)
    if not record.conforms:
        pytest.fail(passage(record.message or f"{record.id}: {record.verdict}"), pytrace=False)
