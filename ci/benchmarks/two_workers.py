"""A sample of the full tier with one worker and with two: how many times as fast two are. For a quiet machine alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figure import Figure

SHARD = "1/8"
"""A part of the full tier, as a night's machine judges one: some two minutes of one worker.

Starting a worker takes some seconds of its core, which are nothing beside the whole tier and much beside a small part.
"""


def measure() -> list[Figure]:
    """Wall seconds from start to exit, after a run that fills the caches; the load tells of a quiet machine."""
    load = os.getloadavg()[0]
    _run(2)
    cases, one = _run(1)
    _, two = _run(2)
    return [
        Figure("two workers: load before, others' work included", load, ""),
        Figure("two workers: cases of the sample", cases, "cases"),
        Figure("two workers: seconds with one", one, "s"),
        Figure("two workers: seconds with two", two, "s"),
        Figure("two workers: times as fast as one", one / two, "times", ">=", 1.8),
    ]


def _run(workers: int) -> tuple[int, float]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "mlx_assay.conformance.cli", "run", "--tier", "full", "--shard", SHARD]
        began = time.perf_counter()
        # One thread a worker in both, as the run itself sets it for several.
        subprocess.run(
            [*command, "-n", str(workers), "--report", str(report)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - began
        made = json.loads(report.read_bytes())
    if not made["complete"]:
        raise RuntimeError(f"Expected a complete run but got {made['totals']}")
    return made["totals"]["executed"], seconds
