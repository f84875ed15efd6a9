"""The host executor's own costs: compiling, launching, guarding, and what a second core brings."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from figure import Figure

LONG = """
    uint i = thread_position_in_grid.x;
    float s = a[i];
    for (int j = 0; j < 200; j++) s = simd_max(s * 0.99f + simd_shuffle_xor(s, 1));
    out[i] = s;
"""
MODEL = """
    threadgroup T s[64];
    uint i = thread_position_in_grid.x, l = thread_position_in_threadgroup.x;
    s[l] = a[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = simd_sum(s[63 - l] * T(2) + T(%d));
"""
_numbers = count(int(time.time()))


def measure() -> list[Figure]:
    """Milliseconds of processor time, medians; wall time where cores are compared."""
    from mlx_assay.impl.executors import choice, use

    with use("host"):
        compiled = _processor(lambda: _launch(MODEL % next(_numbers), 64, 64), 7)
        warm = _processor(_repeated(256), 7) * 10
        wide = _processor(_repeated(1 << 20), 5) / 100
        with choice.guarded():
            guarded = _processor(_repeated(256), 7) * 10
        figures = [
            Figure("host: compile, load and run a new kernel", compiled, "ms", "<=", 100),
            Figure("host: launch of 256 threads, compiled before", warm, "us", "<=", 300),
            Figure("host: the same, guarded", guarded, "us", "<=", 300),
            Figure("host: launch of 1,048,576 threads that copy", wide, "ms"),
        ]
        if len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()) > 1:
            (one, _), (two, share) = (_on_threads(n) for n in (1, 2))
            figures.append(Figure("host: two cores as fast as one, times", one / two, "", ">=", 1.8))
            figures.append(Figure("host: work of the launching thread of two", 100 * share, "%"))
    return figures


def _launch(source: str, size: int, threadgroup: int) -> list[Any]:
    import mlx.core as mx

    from mlx_assay.impl.executors import metal_kernel

    x = mx.ones((size,))
    return _call(metal_kernel("measured", ["a"], ["out"], source), x, threadgroup)


def _call(kernel: Any, x: Any, threadgroup: int) -> list[Any]:
    template = [("T", x.dtype)]
    called: list[Any] = kernel(
        inputs=[x],
        template=template,
        grid=(x.size, 1, 1),
        threadgroup=(threadgroup, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return called


def _repeated(size: int) -> Callable[[], None]:
    import mlx.core as mx

    from mlx_assay.impl.executors import metal_kernel

    source = "uint i = thread_position_in_grid.x; out[i] = a[i] + T(1);"
    kernel, x = metal_kernel("measured", ["a"], ["out"], source), mx.ones((size,))
    mx.eval(x)

    def hundred() -> None:
        for _ in range(100):
            _call(kernel, x, 256)

    return hundred


def _on_threads(number: int) -> tuple[float, float]:
    """Wall seconds, and the launching thread's share of the processor time; a busy machine spoils the first alone."""
    before = os.environ.get("MLX_ASSAY_THREADS")
    os.environ["MLX_ASSAY_THREADS"] = str(number)
    try:
        _launch(LONG, 1 << 15, 256)
        spent, share = [], []
        for _ in range(7):
            began, all_began, own_began = time.perf_counter(), time.process_time(), time.thread_time()
            _launch(LONG, 1 << 15, 256)
            spent.append(time.perf_counter() - began)
            share.append((time.thread_time() - own_began) / (time.process_time() - all_began))
        return min(spent), statistics.median(share)
    finally:
        if before is None:
            del os.environ["MLX_ASSAY_THREADS"]
        else:
            os.environ["MLX_ASSAY_THREADS"] = before


def _processor(call: Callable[[], Any], repeats: int) -> float:
    """Milliseconds of this process and of those that it waited for."""

    def now() -> float:
        times = os.times()
        return time.process_time() + times.children_user + times.children_system

    call()
    spent = []
    for _ in range(repeats):
        began = now()
        call()
        spent.append(1000 * (now() - began))
    return statistics.median(spent)
