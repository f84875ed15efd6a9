"""The text of a stock kernel and what Apple's compiler made of it give the same bits, in every order and schedule."""

from __future__ import annotations

from typing import Any

from trials.coverage import subject
from trials.trial import Trial, encoding

from mlx_assay.impl.executors import choice, fidelity
from mlx_assay.impl.executors.stock.opaque import OPAQUE

# Each order of a simdgroup's sums and each schedule at least once.
WAYS = (
    ("ascending-butterfly", "in-order"),
    ("descending-butterfly", "reverse"),
    ("sequential", "round-robin"),
    ("reverse-sequential", "pct:1"),
)


def test_both_doors(trial: Trial, texts: Any, bitcode: Any) -> None:
    bitcode.asked.clear()
    for order, schedule in WAYS:
        with fidelity.switched(simd_sum=order), choice.schedule(schedule):
            text, compiled = trial.run(texts), trial.run(bitcode)
        assert (encoding(text) == encoding(compiled)).all(), (order, schedule)
    for kernel in bitcode.asked:
        assert set(kernel.opaque) <= set(OPAQUE.get(subject(kernel.name), ())), "OPAQUE lacks what decides its bits"


def test_the_orders_tell_apart(texts: Any) -> None:
    """That the ways above are different ones: the sum of a row has other bits in another order."""
    import numpy as np

    from mlx_assay.impl.executors.stock import reduction

    x = np.random.default_rng(0).standard_normal((1, 100)).astype(np.float32)
    found = set()
    for order, _ in WAYS:
        with fidelity.switched(simd_sum=order):
            found.add(reduction.reduce_rows(texts, x).tobytes())
    assert len(found) > 1
