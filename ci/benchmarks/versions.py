"""`mlx-assay versions` of four releases, their environments and kernels at hand: seconds, and what was compared."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from figure import Figure

RELEASES = ("0.30.6", "0.31.2", "0.32.2", "0.32.4")


def measure() -> list[Figure]:
    """A short run that makes what is missing and is not measured, and one over every input."""
    _run("rows/float32/nan-amid")
    report, seconds = _run()
    inputs = sum(count for counts in report["inputs"].values() for count in counts.values())
    return [
        Figure(f"versions: {len(RELEASES)} releases, environments cached", seconds, "s", "<=", 90),
        Figure("versions: inputs", inputs, "inputs", ">=", 10000),
    ]


def _run(*queries: str) -> tuple[dict[str, Any], float]:
    """The report and the wall seconds from start to exit; RuntimeError where a release could not be asked."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.json")
        command = [sys.executable, "-m", "mlx_assay.conformance.cli", "versions", *RELEASES, *queries]
        began = time.perf_counter()
        subprocess.run([*command, "--json", str(file)], stdout=subprocess.DEVNULL, check=False)
        seconds = time.perf_counter() - began
        report = json.loads(file.read_bytes())
    if not all(asked["answered"] for asked in report["asked"]):
        raise RuntimeError(f"Expected every release to answer but got {report['asked']}")
    return report, seconds
