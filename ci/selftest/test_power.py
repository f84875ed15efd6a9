"""Power: implementations that do nothing fail every case of the quick tier."""

from __future__ import annotations

import pytest

from mlx_assay.conformance.contract import Contract, contracts, seen
from mlx_assay.conformance.judging.panel import Panel
from mlx_assay.conformance.judging.power import powerless_twin
from mlx_assay.fixtures.kind import kinds
from mlx_assay.oracles.registry import load

HOST = {"simd_sum": "ascending-butterfly", "f32_denormals": "flushed"}


@pytest.mark.parametrize("operation", sorted(contracts()))
def test_a_twin_without_work_fails_every_quick_case(operation: str) -> None:
    """Zeros, the input, the previous output: against the primary oracle alone, so that a failure is beyond doubt."""
    contract = contracts()[operation]
    primary = Contract(
        operation, "", contract.parameters, contract.dtypes, contract.references[:1], (), prepare=contract.prepare
    )
    panel = Panel(primary, load, contract.relaxations)
    powerless = []
    for (owner, _), kind in sorted(kinds().items()):
        for case in kind.cases("quick") if owner == operation else ():
            subcases = kind.subcases(case)
            plain = [seen(subcase, HOST) for subcase in subcases]
            expected = [
                [] if subcase.raises else panel.expect(arguments)
                for subcase, arguments in zip(subcases, plain, strict=True)
            ]
            if twin := powerless_twin(subcases, expected, contract.relaxations):
                powerless.append(f"{case.id}: {twin}")
    assert powerless == []
