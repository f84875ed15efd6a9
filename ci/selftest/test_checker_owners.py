"""Memory under the checker that is no array of the kernel's, accesses by atomics, and what orders threadgroups."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.checker import Kind, check

HEADER = "constant float one[4] = {1, 2, 3, 4};\nconstant float two[4] = {5, 6, 7, 8};\n"
FENCE = "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);"


def found(body: str, dtype: Any = mx.float32, groups: int = 1, threads: int = 32) -> list[tuple[Any, ...]]:
    """Kind, array and index of what is found; x is uint[64], y has 32 elements of a dtype."""
    kernel = metal_kernel("k", ["x"], ["y"], f"uint i = thread_position_in_grid.x;\n{body}", header=HEADER)

    def call() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(64, dtype=mx.uint32)],
            grid=(groups * threads, 1, 1),
            threadgroup=(threads, 1, 1),
            output_shapes=[(32,)],
            output_dtypes=[dtype],
        )

    with use("host"):
        return [(one.kind, one.array, one.index) for one in check(call)[1]]


def test_a_pointer_to_one_of_several_variables_is_the_thread_s_own() -> None:
    chosen = "float a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8};\nthread float* p = i & 1 ? &a[i & 3] : &b[i & 3];\n"
    assert found(chosen + "*p += 1; y[i] = *p;") == []
    several = "float a[4] = {1, 2, 3, 4}; float s = 0; thread float* p = a;\nfor (uint k = 0; k < 4; k++) s += *p++;\n"
    assert found(several + "y[i] = s;") == []


def test_a_pointer_to_one_of_several_constants_is_the_program_s_own() -> None:
    assert found("constant float* p = i & 1 ? one : two; y[i] = p[i & 3];") == []
    assert (Kind.OUT_OF_BOUNDS, "", None) in found("constant float* p = i & 1 ? one : two; y[i] = p[i + (1u << 18)];")


LOAD = "atomic_load_explicit((device atomic_uint*)({}), memory_order_relaxed)"


def test_an_atomic_read_of_an_input_writes_nothing() -> None:
    assert found(f"y[i] = {LOAD.format('(device uint*)x + i')};", mx.uint32) == []
    told = found(f"y[i] = i; if (i == 3) y[3] = {LOAD.format('(device uint*)x + 64')};", mx.uint32)
    assert told == [(Kind.OUT_OF_BOUNDS, "x", 64), (Kind.DEPENDS_ON_GARBAGE, "y", 3)]


def test_an_atomic_read_that_goes_beyond_writes_nothing() -> None:
    load = LOAD.format("(device uint*)((device uchar*)y + 126)")
    told = found(f"if (i < 31) y[i] = i; if (i == 3) {{ uint k = {load}; if (k == 77) y[0] = k; }}", mx.uint32)
    assert (Kind.OUT_OF_BOUNDS, "y", 31) in told
    assert (Kind.UNWRITTEN, "y", 31) in told


@pytest.mark.parametrize("atomic", [False, True])
def test_fences_order_threadgroups_by_atomics_alone(atomic: bool) -> None:
    cell = "(device atomic_uint*)(y + 1)"
    put = f"atomic_store_explicit({cell}, 1u, memory_order_relaxed);" if atomic else "y[1] = 1;"
    get = LOAD.format("y + 1") if atomic else "y[1]"
    body = (
        "if (i > 1 && i < 32) y[i] = 0;\n"
        f"if (i == 0) {{ y[0] = 5;\n{FENCE}\n{put} }}\n"
        f"if (i == 32) {{ uint k = {get};\n{FENCE}\nif (k == 1) k += y[0]; if (k == 77) y[2] = k; }}"
    )
    races = {
        index for kind, array, index in found(body, mx.uint32, 2) if kind is Kind.THREADGROUP_RACE and array == "y"
    }
    assert races == (set() if atomic else {0, 1})
