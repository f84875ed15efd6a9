"""What a kernel does, counted while it runs on the host executor."""

from mlx_assay.impl.executors.counting.comparison import Bound, Comparison, bound, compare
from mlx_assay.impl.executors.counting.counts import (
    Arithmetic,
    Atomics,
    Barriers,
    Counts,
    Operations,
    Site,
    Traffic,
    scaled,
    total,
)
from mlx_assay.impl.executors.counting.devices import DEVICES, H200, M1_MAX, DeviceClass
from mlx_assay.impl.executors.counting.session import CountingError, counted

__all__ = [
    "DEVICES",
    "H200",
    "M1_MAX",
    "Arithmetic",
    "Atomics",
    "Barriers",
    "Bound",
    "Comparison",
    "CountingError",
    "Counts",
    "DeviceClass",
    "Operations",
    "Site",
    "Traffic",
    "bound",
    "compare",
    "counted",
    "scaled",
    "total",
]
