"""The copy speed: what the device's memory gives, measured in the process and on the device of everything else."""

from __future__ import annotations

import numpy as np

from mlx_assay.conformance.bench.process import Measuring
from mlx_assay.conformance.bench.report import Copied

LARGEST = 1 << 30
SHARE = 16
"""Of the device's memory, one part in so many is copied at most."""


def copied(measuring: Measuring, executor: str) -> Copied | None:
    """The fastest way of copying, by the medians; None on the host, whose memory is no kernel's limit."""
    if executor == "host":
        return None
    memory = int(measuring.device.get("memory_bytes") or 0)
    size = min(LARGEST, memory // SHARE or LARGEST) & ~0xFFF
    found = {way: np.percentile(spans, (25, 50, 75)) for way, spans in measuring.copies(size).items()}
    way = min(found, key=lambda name: float(found[name][1]))
    low, median, high = map(float, found[way])
    return Copied(way=way, size=size, bytes_a_second=2 * size / median * 1e9, spread=(high - low) / median)
