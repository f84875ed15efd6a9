"""The machines that run Metal kernel text: `metal` (mx.fast.metal_kernel) and `host` (this CPU), behind one call."""

from mlx_assay.impl.executors.choice import (
    NAMES,
    ExecutorUnavailable,
    UnknownExecutor,
    available,
    current,
    poison,
    use,
)
from mlx_assay.impl.executors.counting import CountingError, Counts, counted
from mlx_assay.impl.executors.diagnosis import Finding, describe, doctor
from mlx_assay.impl.executors.divergence import DivergenceWarning
from mlx_assay.impl.executors.kernel import Kernel, metal_kernel
from mlx_assay.impl.executors.memories import RememberedNoMetal, remembering
from mlx_assay.impl.executors.substitution import cuda_metal, host_metal
from mlx_assay.impl.executors.trace import shapeless_tracing, tracing

__all__ = [
    "NAMES",
    "CountingError",
    "Counts",
    "DivergenceWarning",
    "ExecutorUnavailable",
    "Finding",
    "Kernel",
    "RememberedNoMetal",
    "UnknownExecutor",
    "available",
    "counted",
    "cuda_metal",
    "current",
    "describe",
    "doctor",
    "host_metal",
    "metal_kernel",
    "poison",
    "remembering",
    "shapeless_tracing",
    "tracing",
    "use",
]
