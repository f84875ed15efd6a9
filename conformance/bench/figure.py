"""Figures: the median and quartiles of what one contender took, and whether they can be relied on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

NOISY = 0.1
"""The distance of the quartiles, as a share of the median, from which a figure is called noisy."""


class Figure(msgspec.Struct, frozen=True):
    """Nanoseconds a call: over queues the median, the quartiles and the least. `queues` of `calls` calls each."""

    median: float
    low: float
    high: float
    least: float
    queues: int
    calls: int

    @property
    def spread(self) -> float:
        """The distance of the quartiles as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    @property
    def noisy(self) -> bool:
        """Whether the spread is too large for the third digit to mean anything."""
        return self.spread > NOISY


def figure(spans: Sequence[int], calls: int) -> Figure:
    """Of the spans of queues of `calls` calls each, in nanoseconds; of no calls, of the spans themselves."""
    each = np.asarray(spans, np.float64) / max(calls, 1)
    low, median, high = np.percentile(each, (25, 50, 75))
    return Figure(float(median), float(low), float(high), float(each.min()), len(spans), calls)
