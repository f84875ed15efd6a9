"""What unchecked launches tell of lanes and threads that were missing: once a kernel, at the caller's line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import DivergenceWarning, metal_kernel, use

THREAD = "uint i = thread_position_in_grid.x; "
BRANCHES = f"{THREAD}uint s = 0;\nif (i % 2) s = simd_sum(x[i]);\ny[i] = simd_max(s);"
RETURNS = f"{THREAD}y[i] = x[i]; if (i > 40) return; threadgroup_barrier(mem_flags::mem_none);"
SILENT = {
    "all lanes": f"{THREAD}y[i] = simd_sum(x[i]);",
    "made for branches": f"{THREAD}y[i] = 0;\nif (i % 2) y[i] = uint(ulong(simd_active_threads_mask()));\n"
    "threadgroup_barrier(mem_flags::mem_none);",
}


def launching(source: str) -> Callable[[], mx.array]:
    kernel = metal_kernel("k", ["x"], ["y"], source)

    def launch() -> mx.array:
        with use("host"):
            (y,) = kernel(
                inputs=[mx.arange(64, dtype=mx.uint32)],
                grid=(64, 1, 1),
                threadgroup=(64, 1, 1),
                output_shapes=[(64,)],
                output_dtypes=[mx.uint32],
            )
        return y

    return launch


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (BRANCHES, "kernel 'k': 2 simdgroup operations ran for some lanes alone while others were elsewhere"),
        (RETURNS, "kernel 'k': 1 barrier opened after threads had returned"),
    ],
)
def test_it_is_told_once_where_the_kernel_is_called(source: str, told: str) -> None:
    launch = launching(source)
    with pytest.warns(DivergenceWarning) as caught:
        launch()
    (warning,) = caught
    assert str(warning.message).startswith(f"{told}. ")
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "(y,) = kernel(" in text)
    assert (warning.filename, warning.lineno) == (__file__, line)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch()


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_told_where_nothing_is_amiss(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launching(SILENT[name])()
