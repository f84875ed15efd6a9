"""Every stock kernel of the headers that MLX ships, compiled from their text, against MLX's own CPU operation."""

from __future__ import annotations

from typing import Any

from trials.trial import Trial, same, within


def test_text_against_the_cpu(trial: Trial, texts: Any) -> None:
    got, expected = trial.run(texts), trial.expected()
    if trial.bound is None:
        assert same(got, expected)
        return
    exact, bound = trial.bound()
    assert trial.reason, "a bound without a reason"
    assert within(got, exact, bound)
    assert within(expected, exact, bound), "MLX's own CPU operation is outside of the bound: the bound is wrong"
