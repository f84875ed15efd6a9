"""The text of a stock kernel and what Apple's compiler made of it give the same bits, in every order and schedule."""

from __future__ import annotations

from typing import Any

from trials.trial import Trial, encoding

from mlx_assay.impl.executors import choice, fidelity

# Each order of a simdgroup's sums and each schedule at least once.
WAYS = (
    ("ascending-butterfly", "in-order"),
    ("descending-butterfly", "reverse"),
    ("sequential", "round-robin"),
    ("reverse-sequential", "pct:1"),
)


def test_both_doors(trial: Trial, texts: Any, bitcode: Any) -> None:
    for order, schedule in WAYS:
        with fidelity.switched(simd_sum=order), choice.schedule(schedule):
            text, compiled = trial.run(texts), trial.run(bitcode)
        assert (encoding(text) == encoding(compiled)).all(), (order, schedule)


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
