"""The clocks of the measuring process, bound before anything of an implementation's is imported."""

from __future__ import annotations

import time
from collections.abc import Callable

now: Callable[[], int] = time.perf_counter_ns
"""Nanoseconds of the clock by which figures are made."""

_get, _kind = time.clock_gettime_ns, getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)


def raw() -> int:
    """Nanoseconds of another clock, which no adjustment of the system's time reaches."""
    return _get(_kind)
