"""`mlx-assay fixtures check`, and `regen` of everything that needs no model: nothing changes, so nothing is written."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from figure import Figure


def measure() -> list[Figure]:
    """Wall seconds of both, start of Python included."""
    return [
        Figure("fixtures check", _seconds("check"), "s", "<=", 20),
        Figure("fixtures regen of every group of goldens", _seconds("regen", "*"), "s", "<=", 240),
    ]


def _seconds(*action: str) -> float:
    command = [sys.executable, "-m", "mlx_assay.conformance.cli", "fixtures", *action]
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    began = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
