"""Where the time of an implementation's process went, as it says: put beside the judge's own, if that counts."""

from __future__ import annotations

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.process.protocol import Spent

IMPLEMENTATION = "implementation: "
"""Before the names of the stages of that process."""

STAGES = ("start", "idle", "transport", "call", "evaluation", "compile", "graph compiler", "launch", "kernel")
LONGEST = 1e7
"""Seconds, and entries, beyond which nothing is believed: the account need not come from the server."""


def account(spent: Spent) -> None:
    """Takes over what is of a known stage, and a number that can be."""
    watch = stopwatch.current()
    if watch is None:
        return
    for name in STAGES:
        numbers = spent.get(name, (0, 0.0, 0.0))
        if all(0 <= number < LONGEST for number in numbers):
            watch.add(f"{IMPLEMENTATION}{name}", *numbers)
