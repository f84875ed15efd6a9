"""What the plugin adds to the start of a pytest that does not use it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

from figure import Figure

REPEATS = 9
IMPORT = """
import time
import pytest
began = time.perf_counter()
import mlx_assay.conformance.plugin
print(time.perf_counter() - began)
"""


def measure() -> list[Figure]:
    """Milliseconds: the median import after pytest's own, and the difference of the fastest whole starts."""
    with tempfile.TemporaryDirectory() as folder:
        imports = [float(_output(folder, "-c", IMPORT)) for _ in range(REPEATS)]
        starts = [(_start(folder), _start(folder, "-p", "no:mlx_assay")) for _ in range(REPEATS)]
    added = min(with_plugin for with_plugin, _ in starts) - min(without for _, without in starts)
    return [
        Figure("plugin import, unused", 1000 * statistics.median(imports), "ms", "<=", 50),
        Figure("start of pytest with the plugin, less without", 1000 * added, "ms"),
    ]


def _start(folder: str, *options: str) -> float:
    began = time.perf_counter()
    _output(folder, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options)
    return time.perf_counter() - began


def _output(folder: str, *arguments: str) -> str:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True).stdout
