"""Guarded launches: what leaves an array is told with its name, harms nothing, and the next kernel runs."""

import subprocess
import sys
import threading
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import choice, metal_kernel, use
from mlx_assay.impl.executors.guard import StrayAccess

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a touch of a guarded page ends the process")
X = np.arange(64, dtype=np.float32)
DOWN = "static float down(float x, int n) { float b[64]; for (int j = 0; j < 64; j++) b[j] = x * j; " \
    "return n ? down(b[n % 64], n - 1) + b[(n + 1) % 64] : x; }"  # fmt: skip


def run(source: str, x: Any = X, header: str = "", contiguous: bool = True, guarded: bool = True) -> list[Any]:
    kernel = metal_kernel("stray", ["a"], ["out"], f"uint i = thread_position_in_grid.x; {source}", header, contiguous)
    array = x if isinstance(x, mx.array) else mx.array(x)
    n = max(array.size, 1)
    with use("host"), choice.guarded() if guarded else choice.schedule("in-order"):
        (out,) = kernel(
            inputs=[array],
            output_shapes=[array.shape],
            output_dtypes=[array.dtype],
            grid=(n, 1, 1),
            threadgroup=(min(n, 64), 1, 1),
        )
    return list(np.array(out).reshape(-1).tolist())


STRAYS = {
    "out[i] = a[i + 1];": "reads 'a' at element 64, and it has 64",
    "out[i + 1] = a[i];": "writes 'out' at element 64, and it has 64",
    "out[i] = a[int(i) - 2000];": "reads 'a' at element -2000, and it has 64",
    "out[i] = a[i * 1000000];": "reads 'a' at element 1000000, and it has 64",
    "out[i] = i == 5 ? a[100] : 0.0f;": "reads 'a' at element 100, and it has 64",
    "atomic_fetch_add_explicit((device atomic_uint*)(out + 64), 1u, memory_order_relaxed);": "'out' at element 64",
    "*(device float*)(ulong(i) * 8 + 8) = 1;": "writes address 0x8, which belongs to none of its arrays",
    "*(device float*)(ulong(i + 1) * 0x123456789abcdef) = 1;": "belongs to none of its arrays",
    "threadgroup float s[64]; s[i + 1] = a[i]; out[i] = s[i];": "writes threadgroup memory beyond its own",
}


@linux
@pytest.mark.parametrize("source", STRAYS)
def test_a_stray_access_is_told_and_the_next_kernel_runs(source: str) -> None:
    with pytest.raises(StrayAccess, match=STRAYS[source]) as raised:
        run(source)
    assert "kernel 'stray'" in str(raised.value)
    assert run("threadgroup float s[64]; s[i] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup); "
               "out[i] = simd_max(s[63 - i]);") == [63.0] * 32 + [31.0] * 32  # fmt: skip


@linux
def test_private_memory_of_several_functions_is_told() -> None:
    own = "float b[40000]; for (uint j = 0; j < 40000; j++) b[j] = j * x;"
    header = f"__attribute__((noinline)) static float large(float x, uint i) {{ {own} return b[i * 7]; }}"
    source = f"float x = a[i]; {own} out[i] = b[i * 7];"
    assert run(source, guarded=False) == run(source)
    with pytest.raises(StrayAccess, match="more than 240 KiB"):
        run(f"float x = a[i]; {own} out[i] = large(x, i) + b[i * 5];", header=header)


@linux
def test_recursion_is_told() -> None:
    with pytest.raises(StrayAccess, match="or it calls itself"):
        run("out[i] = down(a[i], 100000);", header=DOWN)
    assert run("out[i] = down(a[i], 3);", header=DOWN) == run("out[i] = down(a[i], 3);", header=DOWN, guarded=False)


@pytest.mark.parametrize("source", ["if (i == 3) out[-1] = 1.0f;", "if (i == 3) out[-960] = 1.0f;"])
def test_a_write_before_an_array_is_told(source: str) -> None:
    with pytest.raises(StrayAccess, match="writes 'out' before its first element"):
        run(source)


def test_a_write_into_an_input_is_told_and_harms_nothing() -> None:
    x = mx.array(X)
    mx.eval(x)
    with pytest.raises(StrayAccess, match="writes into its input 'a'"):
        run("*(device float*)(ulong)&a[7] = 1000.0f;", x)
    assert x.tolist() == X.tolist()


VIEWS = {
    "scalar": lambda: mx.array(3.0),
    "one": lambda: mx.array([3.0]),
    "small": lambda: mx.arange(7).astype(mx.float32),
    "bytes": lambda: mx.arange(13).astype(mx.uint8),
    "wide": lambda: mx.arange(5000).astype(mx.float32),
    "long": lambda: mx.arange(513).astype(mx.int64),
    "page": lambda: mx.arange(4096).astype(mx.uint8),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_sound_kernel_computes_the_same(name: str) -> None:
    source = "out[i] = a[i] + a[i];" if name != "scalar" else "out[0] = a + a;"
    x = VIEWS[name]()
    assert run(source, x) == np.array(x + x).reshape(-1).tolist()


STRIDED = {
    "reversed": lambda x: x[::-1],
    "every second": lambda x: x[::2],
    "columns": lambda x: x.reshape(8, 8)[:, 2:5],
    "transposed": lambda x: x.reshape(8, 8).T,
    "broadcast": lambda x: mx.broadcast_to(x[:1], (8,)),
}


@pytest.mark.parametrize("name", STRIDED)
def test_views_are_placed_whole(name: str) -> None:
    x = STRIDED[name](mx.array(X))
    source = "out[i] = a[elem_to_loc(int64_t(i), a_shape, a_strides, a_ndim)];"
    assert run(source, x, contiguous=False) == np.array(x).reshape(-1).tolist()


def test_an_empty_input_is_placed() -> None:
    kernel = metal_kernel("empty", ["a"], ["out"], "out[thread_position_in_grid.x] = a_shape[0];")
    with use("host"), choice.guarded():
        (out,) = kernel(
            inputs=[mx.zeros((0, 3))], output_shapes=[(2,)], output_dtypes=[mx.int32], grid=(2, 1, 1),
            threadgroup=(2, 1, 1),
        )  # fmt: skip
    assert out.tolist() == [0, 0]


@linux
def test_threads_fault_for_themselves() -> None:
    told: list[str] = []
    sums: list[float] = []

    def stray() -> None:
        for _ in range(20):
            try:
                run("out[i] = a[i + 1];")
            except StrayAccess as error:
                told.append(str(error))

    def sound() -> None:
        for _ in range(20):
            sums.append(sum(run("out[i] = simd_max(a[i]);")))

    threads = [threading.Thread(target=work) for work in (stray, sound, stray, sound)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 40
    assert sums == [32 * 31.0 + 32 * 63.0] * 40


FAULT = """
import ctypes, faulthandler, sys
import mlx.core as mx
from mlx_assay.impl.executors import choice, metal_kernel, use
faulthandler.enable()
k = metal_kernel("k", ["a"], ["out"], "out[thread_position_in_grid.x] = a[0];")
with use("host"), choice.guarded():
    k(inputs=[mx.ones((8,))], output_shapes=[(8,)], output_dtypes=[mx.float32], grid=(8, 1, 1), threadgroup=(8, 1, 1))
    sys.stdout.write("ran")
    sys.stdout.flush()
    ctypes.string_at(0)
"""


@linux
def test_a_fault_elsewhere_ends_the_process_as_ever() -> None:
    done = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=120)
    assert done.stdout == "ran"
    assert done.returncode == -11
    assert "string_at" in done.stderr, "faulthandler's own text"
