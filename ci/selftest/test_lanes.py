"""The order of a SIMD group's sum, as it is asked of an executor: each order is told from the others."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_assay.conformance.process import lanes
from mlx_assay.impl.executors import fidelity
from mlx_assay.oracles.fused import ORDERS, simd_sum


@pytest.mark.parametrize("order", fidelity.SWITCHES["simd_sum"])
def test_the_executors_order_is_found(order: str) -> None:
    with fidelity.switched(simd_sum=order):
        assert lanes.measured("host") == order


def test_orders_have_the_executors_names() -> None:
    assert tuple(ORDERS) == fidelity.SWITCHES["simd_sum"]


def test_probes_tell_the_orders_apart() -> None:
    values = lanes.probes().T
    sums = {order: simd_sum(values, order) for order in ORDERS}
    for one in ORDERS:
        for other in ORDERS:
            assert one == other or (sums[one] != sums[other]).sum() > 5


def test_an_order_that_is_none_of_them_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "ORDERS", {"sequential": ORDERS["sequential"]})
    with fidelity.switched(simd_sum="reverse-sequential"):
        assert lanes.measured("host") == "unknown"
    assert np.isfinite(lanes.probes()).all()
