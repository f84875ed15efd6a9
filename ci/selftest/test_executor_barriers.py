"""Barriers of a threadgroup on the host executor: who runs next, and what is said of threads that have returned."""

from __future__ import annotations

import warnings

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import DivergenceWarning, metal_kernel, use
from mlx_assay.impl.executors.choice import schedule

BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
HEAD = "uint i = thread_index_in_threadgroup;\n"


def run(body: str, threads: int, size: int) -> list[int]:
    kernel = metal_kernel("barriers", ["a"], ["out"], HEAD + body, atomic_outputs=True)
    with use("host"):
        (out,) = kernel(
            inputs=[mx.zeros(8)],
            output_shapes=[(size,)],
            output_dtypes=[mx.uint32],
            grid=(threads, 1, 1),
            threadgroup=(threads, 1, 1),
            init_value=0,
        )
    found: list[int] = np.array(out).tolist()
    return found


# Whoever comes here takes the next place and leaves its number there.
TAKE = (
    "uint place = atomic_fetch_add_explicit(&out[0], 1u, memory_order_relaxed);\n"
    "atomic_store_explicit(&out[1 + place], i, memory_order_relaxed);"
)
LAST_FIRST = [95, *range(64, 95), *range(64)]
FIRST_FIRST = [0, *range(31, 0, -1), *range(95, 31, -1)]
IN_TURN = [32 * group + lane for lane in range(32) for group in range(3)]


@pytest.mark.parametrize(
    ("name", "order"),
    [
        # The last that comes to the barrier goes on, and with it its simdgroup; then come the others in turn.
        ("in-order", LAST_FIRST),
        ("reverse", FIRST_FIRST),
        # Simdgroups take turns: nobody goes on at once.
        ("round-robin", IN_TURN),
    ],
)
def test_who_runs_after_a_barrier(name: str, order: list[int]) -> None:
    with schedule(name):
        assert run(f"{BARRIER}\n{TAKE}", 96, 97) == [96, *order]


@pytest.mark.parametrize(("barriers", "told"), [(1, "1 barrier opened"), (3, "3 barriers opened")])
def test_barriers_after_threads_have_returned_are_counted(barriers: int, told: str) -> None:
    body = "if (i >= 40) return;\n" + f"{BARRIER}\n" * barriers + "out[i] = 1;"
    with pytest.warns(DivergenceWarning, match=f"'barriers': {told} after threads had returned"):
        run(body.replace("out[i] = 1", "atomic_store_explicit(&out[i], 1u, memory_order_relaxed)"), 64, 64)


def test_a_thread_at_another_barrier_than_the_others_goes_no_further() -> None:
    # The last thread comes to a barrier of its own when all others wait. Its write would be seen in the input.
    body = f"if (i < 13) {{\n{BARRIER}\n}} else {{\n{BARRIER}\n((device uint*)a)[0] = 7;\n}}\nout[i] = a[0];"
    kernel = metal_kernel("apart", ["a"], ["out"], HEAD + body)
    given = mx.zeros(8, mx.uint32)
    with use("host"), pytest.raises(RuntimeError, match=r"source lines 3 and 5"):
        kernel(
            inputs=[given],
            output_shapes=[(14,)],
            output_dtypes=[mx.uint32],
            grid=(14, 1, 1),
            threadgroup=(14, 1, 1),
        )
    assert given.tolist() == [0] * 8


def test_barriers_that_every_thread_reaches_are_not_told_of() -> None:
    body = f"{BARRIER}\n{BARRIER}\natomic_store_explicit(&out[i], i, memory_order_relaxed);"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(body, 64, 64) == list(range(64))
