"""Where CPU seconds of the quick tier go: stages of a sample, held to half of what they took at first, or nearly."""

from __future__ import annotations

import time

from figure import Figure

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.judging.judge import judge
from mlx_assay.conformance.process.account import IMPLEMENTATION
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.fixtures.kind import all_cases

EACH = 20
"""Of the quick tier's cases one in so many is judged."""
ROUNDS = 2
PROBES = 50_000

GOALS = {f"{IMPLEMENTATION}transport": 200, f"{IMPLEMENTATION}call": 128, "oracle mlx-lm-softcap": 66}
"""CPU microseconds a call of the implementation: they were 367, 257 and 132, on two shared cores of x86-64."""
BOUNDED = (f"{IMPLEMENTATION}kernel", f"{IMPLEMENTATION}launch", "oracle stock-metal")
"""The largest of the others; the first is what a thread's stop costs, 18 ns at a barrier and 11 in a SIMD group."""


def measure() -> list[Figure]:
    """The best of some rounds after one that is not measured; then what counting stages costs."""
    whole, spent, entries, calls = _judged()
    off, on = _cost(), _cost(counted=True)
    return [
        Figure("stages: all of a call", 1e6 * whole / calls, "us"),
        *(Figure(f"stages: {name}", 1e6 * spent[name] / calls, "us", "<=", goal) for name, goal in GOALS.items()),
        *(Figure(f"stages: {name}", 1e6 * spent[name] / calls, "us") for name in BOUNDED),
        Figure("stages: one that nobody counts", 1e9 * off, "ns", "<=", 500),
        Figure("stages: one that is counted", 1e9 * on, "ns", "<=", 5000),
        Figure("stages: counting, of all CPU seconds", 100 * entries * on / whole, "%", "<=", 2),
    ]


def _judged() -> tuple[float, dict[str, float], int, int]:
    """CPU seconds of a round, those of each stage, how often stages were entered, and calls of the implementation."""
    cases = list(all_cases("quick"))[::EACH]
    rounds = []
    with stopwatch.counting(True), Implementation(executor="host") as implementation:
        for _ in range(1 + ROUNDS):
            for case in cases:
                record = judge(case, implementation)
                if not record.conforms:
                    raise RuntimeError(f"Expected a case that conforms but got: {record.message}")
            taken = stopwatch.taken("between")
            spent = {name: cpu for name, (_, cpu, _) in taken.items()}
            entered = sum(count for count, _, _ in taken.values())
            rounds.append((sum(spent.values()), spent, entered, taken[f"{IMPLEMENTATION}call"][0]))
    return min(rounds[1:], key=lambda measured: measured[0])


def _cost(counted: bool = False) -> float:
    """CPU seconds that entering and leaving a stage takes."""
    with stopwatch.counting(counted):
        began = time.process_time()
        for _ in range(PROBES):
            with stopwatch.stage("probe"):
                pass
        return (time.process_time() - began) / PROBES
