"""host and cuda give the same bits for every quick case of the kernels that call no transcendental function.

Any NaN is a NaN, as contracts have it: an NVIDIA GPU's arithmetic gives one NaN, a CPU's keeps a payload.
"""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from machine import NEEDS_GPU
from material import handed

from mlx_assay import impl
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import kind_of, kinds
from mlx_assay.fixtures.tensor import Tensor, viewed
from mlx_assay.impl.executors import choice, use
from mlx_assay.impl.executors.fidelity import switched

pytestmark = NEEDS_GPU

ORDERS = ("in-order", "reverse", "round-robin", "pct:1", "pct:9999")
"""The schedules of the host that cases take in turn."""

# The softcaps are graphs of MLX's own, which run on its device whatever the executor.
KERNELS = [key for key, kind in sorted(kinds().items()) if hasattr(impl, key[0]) and "softcap" not in key[0]]


def outcome(case: Case, arguments: dict[str, Any]) -> Any:
    """The bytes of what the operation gives, or the kind and words of its error."""
    given = {
        name: viewed(handed(value), value.steps, mx) if isinstance(value, Tensor) else value
        for name, value in arguments.items()
    }
    try:
        made = getattr(impl, case.operation)(*given.values())
        mx.eval(made)
    except (ValueError, TypeError) as error:
        return type(error).__name__, str(error)
    plain = np.array(made.view(mx.uint16)).view(ml_dtypes.bfloat16) if made.dtype == mx.bfloat16 else np.array(made)
    if plain.dtype.kind not in "iub":
        plain = np.where(np.isnan(plain), np.array(np.nan, plain.dtype), plain)
    return made.shape, str(made.dtype), plain.tobytes()


def differing(operation: str, kind: str) -> Iterator[str]:
    """Subcases whose bits differ, or `none` of a kind that has no case."""
    cases = list(kinds()[operation, kind].cases("quick"))
    if not cases:
        yield f"{operation}/{kind} has no case"
    for number, case in enumerate(cases):
        for subcase in kind_of(case).subcases(case):
            with use("host"), choice.schedule(ORDERS[number % len(ORDERS)]), switched(f32_denormals="kept"):
                host = outcome(case, dict(subcase.arguments))
            with use("cuda"):
                gpu = outcome(case, dict(subcase.arguments))
            if host != gpu:
                yield f"{case.id} {subcase.label}"


@pytest.mark.parametrize(("operation", "kind"), KERNELS)
def test_host_and_cuda_agree(operation: str, kind: str) -> None:
    assert list(differing(operation, kind)) == []
