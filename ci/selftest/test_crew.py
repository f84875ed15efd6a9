"""Threadgroups on several cores: the same bits as on one, for launches that are long enough."""

import os
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import ExecutorUnavailable, choice, crew, describe, metal_kernel, use
from mlx_assay.impl.executors.guard import StrayAccess

WORK = "float w = a[0]; for (int j = 0; j < 3000; j++) w = fma(w, 0.999f, 0.001f); if (w < 0.0f) return;"


@pytest.fixture(autouse=True)
def four_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(crew.VARIABLE, "4")


def run(
    source: str,
    groups: tuple[int, ...] = (64, 1, 1),
    size: int = 32,
    outputs: int = 0,
    header: str = "",
    **options: Any,
) -> list[Any]:
    grid = (groups[0] * size, *groups[1:])
    n = outputs or groups[0] * groups[1] * groups[2]
    kernel = metal_kernel(
        "crew",
        ["a"],
        ["out"],
        "uint g = threadgroup_position_in_grid.x + threadgroups_per_grid.x * (threadgroup_position_in_grid.y + "
        f"threadgroups_per_grid.y * threadgroup_position_in_grid.z); uint l = thread_index_in_threadgroup; {source}",
        atomic_outputs="atomic" in source,
    )
    with use("host"):
        (out,) = kernel(
            inputs=[mx.array(np.ones(16, np.float32))],
            output_shapes=[(n,)],
            output_dtypes=[options.get("dtype", mx.uint32)],
            grid=grid,
            threadgroup=(size, 1, 1),
            init_value=options.get("init_value"),
        )
    return list(np.array(out).tolist())


@pytest.mark.parametrize("schedule", ["in-order", "reverse", "round-robin", "pct:7"])
def test_the_bits_are_those_of_one_thread(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (
        f"{WORK} threadgroup float s[64]; s[l] = w * l + g; threadgroup_barrier(mem_flags::mem_threadgroup); "
        "float r = simd_sum(s[63 - l]); if (l == 0) out[g] = r;"
    )
    several = run(source, (7, 5, 3), 64, dtype=mx.float32) if choice.code(schedule) >= 0 else []
    with choice.schedule(schedule):
        assert run(source, (7, 5, 3), 64, dtype=mx.float32) == several
        monkeypatch.setenv(crew.VARIABLE, "1")
        assert run(source, (7, 5, 3), 64, dtype=mx.float32) == several
    assert len(set(several)) == 105


def test_atomics_are_atomic_among_cores() -> None:
    source = f"{WORK} for (int j = 0; j < 100; j++) atomic_fetch_add_explicit(&out[l % 4], 1u, memory_order_relaxed);"
    assert run(source, (500, 1, 1), 32, 4, init_value=0) == [500 * 32 // 4 * 100] * 4


def test_two_threadgroups_run_at_once() -> None:
    """After enough work for help to come, one threadgroup waits for what the next one does."""
    source = (
        f"{WORK} if (g == 200 && l == 0) {{ uint seen = 0; for (uint j = 0; j < 400000000u && seen == 0; j++) "
        "seen = atomic_load_explicit(&out[0], memory_order_relaxed); "
        "atomic_store_explicit(&out[1], seen, memory_order_relaxed); } "
        "if (g == 201 && l == 0) atomic_store_explicit(&out[0], 7u, memory_order_relaxed);"
    )
    assert run(source, (220, 1, 1), 32, 2, init_value=0) == [7, 7]


ORDER = (
    "if (l == 0) { uint at = atomic_fetch_add_explicit(&out[0], 1u, memory_order_relaxed); "
    "atomic_store_explicit(&out[1 + at], g, memory_order_relaxed); }"
)


@pytest.mark.parametrize("work", ["", WORK])
def test_one_thread_takes_threadgroups_in_their_order(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(crew.VARIABLE, "1")
    assert run(f"{work} {ORDER}", (4, 3, 2), 32, 25, init_value=0) == [24, *range(24)]
    with choice.schedule("reverse"):
        assert run(f"{work} {ORDER}", (4, 3, 2), 32, 25, init_value=0) == [24, *reversed(range(24))]


def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    asked: list[int] = []
    real = crew._helpers
    monkeypatch.setattr(crew, "_helpers", lambda number: asked.append(number) or real(number))
    return asked


def test_a_long_launch_is_helped_and_a_short_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = calls(monkeypatch)
    assert run("if (l == 0) out[g] = g;", (4, 1, 1)) == list(range(4))
    assert asked == []
    assert run(f"{WORK} if (l == 0) out[g] = g;", (400, 1, 1)) == list(range(400))
    assert asked == [3]


@pytest.mark.parametrize("schedule", ["round-robin", "pct:3"])
def test_schedules_that_draw_stay_in_one_thread(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = calls(monkeypatch)
    with choice.schedule(schedule):
        run(f"{WORK} if (l == 0) out[g] = g;", (400, 1, 1))
    assert asked == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a touch of a guarded page ends the process")
def test_a_fault_ends_the_launch_in_every_thread() -> None:
    for _ in range(5):
        with choice.guarded(), pytest.raises(StrayAccess, match="writes 'out' at element 300"):
            run(f"{WORK} if (g >= 250) out[300] = 1; if (l == 0) out[g] = w;", (300, 1, 1))
        with pytest.raises(RuntimeError, match="wait at different barriers"):
            run(
                f"{WORK} if (g == 250 && l < 32) threadgroup_barrier(mem_flags::mem_none);\n"
                "else threadgroup_barrier(mem_flags::mem_none);",
                (300, 1, 1),
                64,
            )
        with choice.guarded():
            assert run(f"{WORK} if (l == 0) out[g] = g;", (300, 1, 1)) == list(range(300))


def test_many_threads_launch_at_once() -> None:
    results: list[list[int]] = []

    def work() -> None:
        for _ in range(3):
            results.append(run(f"{WORK} if (l == 0) out[g] = g;", (100, 1, 1)))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [list(range(100))] * 18


FORK = """
import os, signal
from ci.selftest.test_crew import WORK, run
source = f"{WORK} if (l == 0) out[g] = g;"
assert run(source, (400, 1, 1)) == list(range(400))
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if run(source, (400, 1, 1)) == list(range(400)) else 1)
assert os.waitpid(child, 0)[1] == 0
assert run(source, (400, 1, 1)) == list(range(400))
"""


def test_a_forked_child_calls_threads_of_its_own() -> None:
    environment = os.environ | {crew.VARIABLE: "3", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    assert crew.threads() == 4
    assert describe("host")["threads"] == "4"
    monkeypatch.delenv(crew.VARIABLE)
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    assert crew.threads() == 1
    monkeypatch.delenv("PYTEST_XDIST_WORKER")
    if hasattr(os, "sched_getaffinity"):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(64)))
        assert crew.threads() == 8
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {5})
        assert crew.threads() == 1


@pytest.mark.parametrize("given", ["0", "-2", "many", "1.5"])
def test_a_number_of_threads_that_cannot_be_meant_is_named(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(crew.VARIABLE, given)
    message = f"MLX_ASSAY_THREADS is '{given}': expected a number of threads"
    with pytest.raises(crew.ThreadsError, match=message):
        crew.threads()
    with pytest.raises(ExecutorUnavailable, match=message):
        run("out[g] = g;", (1, 1, 1))
    with pytest.raises(ExecutorUnavailable, match=message):
        describe("host")


def test_an_interrupted_wait_ends_after_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    futures: list[Future[int]] = [Future(), Future()]
    waits = []

    def interrupted(called: list[Future[int]]) -> None:
        waits.append(len(called))
        if len(waits) == 1:
            raise KeyboardInterrupt
        for future in called:
            future.set_result(0)

    class Request:
        fault = 0

    monkeypatch.setattr(crew, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        crew._join(Request, futures)
    assert len(waits) == 2
    assert Request.fault != 0, "the launch is abandoned"


@pytest.mark.parametrize(("own", "theirs", "fault"), [(101, 101, 2), (101, 0, 0), (0, 101, 0)])
def test_a_launch_that_nobody_could_finish_is_a_fault(own: int, theirs: int, fault: int) -> None:
    """100 asks for help; 101 says that a thread had no memory to take part."""
    from mlx_assay.impl.executors.launch import prepare

    caller = threading.get_ident()
    answers = {True: [100, own], False: [theirs] * 3}
    request = prepare(0, 0, (1, 1, 1), (1, 1, 1), 0, 0)
    assert crew.run(lambda pointer: answers[threading.get_ident() == caller].pop(0), request) == fault
