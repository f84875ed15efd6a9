"""What launches of the executor cuda have of their own: grids, memory, streams, traces, and errors that are told."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from machine import NEEDS_GPU

from mlx_assay.impl import cuda_metal, host_metal, metal_kernel
from mlx_assay.impl.executors import poison, use
from mlx_assay.impl.executors.fidelity import switched

pytestmark = NEEDS_GPU
INDEX = "uint i = thread_position_in_grid.x;\n"
LAST = "uint3 p = thread_position_in_grid, n = threads_per_grid;\nuint i = (p.z * n.y + p.y) * n.x + p.x;\n"


@pytest.fixture(autouse=True)
def _cuda() -> Iterator[None]:
    with use("cuda"):
        yield


def run(
    source: str,
    inputs: list[mx.array],
    shape: tuple[int, ...],
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int] = (64, 1, 1),
    dtype: Any = mx.float32,
    **options: Any,
) -> mx.array:
    made = {k: options.pop(k) for k in ("ensure_row_contiguous", "atomic_outputs") if k in options}
    kernel = metal_kernel("launch", list("abcd"[: len(inputs)]), ["out"], source, "", **made)
    (out,) = kernel(
        inputs=inputs, output_shapes=[shape], output_dtypes=[dtype], grid=grid, threadgroup=threadgroup, **options
    )
    return out


def test_kernels_of_one_name_are_apart() -> None:
    assert [run(f"out[0] = {n};", [], (1,), (1, 1, 1)).item() for n in (1, 2, 3)] == [1, 2, 3]


@pytest.mark.parametrize("grid", [(3, 70000, 1), (2, 3, 70000), (1, 66000, 2), (5, 7, 3)])
def test_grids_with_many_threadgroups(grid: tuple[int, int, int]) -> None:
    count = grid[0] * grid[1] * grid[2]
    got = run(f"{LAST}out[i] = i;", [], (count,), grid, (2, 1, 1), mx.uint32)
    assert np.array_equal(np.array(got), np.arange(count))


def test_a_grid_beyond_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="make the threadgroups larger along y or z"):
        run("out[0] = 1;", [], (1,), (2**20, 2**20, 1), (1, 1, 1))


@pytest.mark.parametrize("dtype", [mx.float32, mx.int32, mx.bfloat16, mx.bool_, mx.complex64, mx.int64])
def test_an_empty_grid_leaves_outputs_as_they_are_before(dtype: Any) -> None:
    assert run("out[0] = 1;", [], (4,), (0, 1, 1), (1, 1, 1), dtype, init_value=1).tolist() == [1] * 4


def test_empty_arrays() -> None:
    assert run(f"{INDEX}if (a_shape[0]) out[i] = a[i];", [mx.zeros((0,))], (0,), (8, 1, 1)).shape == (0,)
    assert run(f"{INDEX}out[i] = a_shape[0];", [mx.zeros((0,))], (8,), (8, 1, 1)).tolist() == [0.0] * 8
    assert run(f"{INDEX}if (i > 8) out[i] = 1;", [], (0, 3), (8, 1, 1), init_value=3).shape == (0, 3)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [(mx.bool_, 1), (mx.int8, -3), (mx.uint8, 200), (mx.int64, -5), (mx.uint64, 9), (mx.complex64, 2), (mx.float16, 7)],
)
def test_dtypes_pass_through(dtype: Any, value: float) -> None:
    x = mx.full((70,), value, dtype)
    assert mx.array_equal(run(f"{INDEX}out[i] = a[i];", [x], (70,), (70, 1, 1), dtype=dtype), x).item()
    assert mx.array_equal(run(f"{INDEX}if (i < 0) out[i] = a[i];", [x], (70,), (70, 1, 1), dtype=dtype,
                              init_value=value), x).item()  # fmt: skip


@pytest.mark.parametrize("pattern", [0x7FC00000, 0x3F800000])
def test_poison_is_in_threadgroup_memory_and_outputs(pattern: int) -> None:
    with poison(pattern):
        got = run(f"{INDEX}threadgroup uint s[64]; if (i < 32) out[i] = as_type<float>(s[i]);", [], (64,), (64, 1, 1))
    assert np.all(np.array(got.view(mx.uint32)) == pattern)


def test_strides_of_views() -> None:
    whole = mx.arange(60).astype(mx.float32).reshape(6, 10)
    source = f"{INDEX}out[i] = a[(i / a_shape[1]) * a_strides[0] + (i % a_shape[1]) * a_strides[1]];"
    for view in (whole.T, whole[1::2, ::3], whole[::-1], mx.broadcast_to(whole[2], (4, 10))):
        for contiguous in (False, True):
            got = run(source, [view], view.shape, (view.size, 1, 1), ensure_row_contiguous=contiguous)
            assert mx.array_equal(got, view).item(), (view.shape, contiguous)


def test_vectors_may_stand_anywhere() -> None:
    x = mx.arange(80).astype(mx.float32)
    source = f"{INDEX}float4 v = *(const device float4*)(a + i + 1); *(device float4*)(out + 4 * i + 1) = v;"
    got = run(source, [x], (80,), (16, 1, 1), init_value=0)
    want = np.zeros(80)
    for i in range(16):
        want[4 * i + 1 : 4 * i + 5] = np.arange(i + 1, i + 5)
    assert np.array_equal(np.array(got), want)
    bytes_ = mx.arange(64).astype(mx.uint8)
    source = f"{INDEX}threadgroup uchar s[68]; s[i] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    source += "out[i] = *(threadgroup uint*)(s + (i < 60 ? i : 60));"
    got = run(source, [bytes_], (64,), (64, 1, 1), dtype=mx.uint32)
    want = [int.from_bytes(bytes([k, k + 1, k + 2, k + 3]), "little") for k in (min(i, 60) for i in range(64))]
    assert got.tolist() == want


def test_denormals_are_kept_unless_switched() -> None:
    x = mx.array([1e-40] * 8)
    source = f"{INDEX}out[i] = a[i] * 2.0f;"
    assert np.all(np.array(run(source, [x], (8,), (8, 1, 1))) > 0)
    with switched(contraction="off"):
        assert np.all(np.array(run(source, [x], (8,), (8, 1, 1))) > 0)
    with switched(f32_denormals="flushed"):
        assert np.all(np.array(run(source, [x], (8,), (8, 1, 1))) == 0)


def test_as_many_threads_as_metal_has_though_each_needs_many_registers() -> None:
    body = f"{INDEX}float v[96]; for (int k = 0; k < 96; k++) v[k] = a[(i * 31 + k * 7) % 1024];\n"
    body += "float s = 0; for (int r = 0; r < 3; r++) for (int k = 0; k < 96; k++) { v[k] = v[k] * 3 + v[(k + 5) % 96]; s += v[k]; }\nout[i] = s;"  # noqa: E501
    x = mx.arange(1024).astype(mx.float32) % 7
    got = run(body, [x], (1024,), (1024, 1, 1), (1024, 1, 1))
    with use("host"):
        want = run(body, [x], (1024,), (1024, 1, 1), (1024, 1, 1))
    assert mx.array_equal(got, want).item()


def test_it_is_a_part_of_graphs() -> None:
    x = mx.arange(64).astype(mx.float32)
    double = f"{INDEX}out[i] = a[i] * 2;"

    def f(a: mx.array) -> mx.array:
        return run(double, [a + 1], (64,), (64, 1, 1)) - 1

    assert mx.compile(f)(x).tolist() == [2 * i + 1 for i in range(64)]
    with pytest.raises(ValueError, match=r"\[Primitive::vjp\] Not implemented for CustomKernel"):
        mx.eval(mx.grad(lambda a: f(a).sum())(x))
    with pytest.raises(ValueError, match=r"\[Primitive::vmap\] Not implemented for CustomKernel"):
        mx.eval(mx.vmap(f)(mx.stack([x, x])))


def test_streams() -> None:
    x = mx.arange(64).astype(mx.float32)
    stream = mx.new_stream(mx.gpu)
    assert run(f"{INDEX}out[i] = a[i] + 1;", [x], (64,), (64, 1, 1), stream=stream).tolist() == [*range(1, 65)]
    for cpu in (mx.cpu, mx.default_stream(mx.cpu)):
        with pytest.raises(ValueError, match="Only supports the GPU"):
            run("out[0] = 1;", [], (1,), (1, 1, 1), stream=cpu)


def test_verbose_prints_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    run("out[0] = 42;", [], (1,), (1, 1, 1), verbose=True)
    assert "out[0] = 42;" in capsys.readouterr().out


def test_the_two_substitutions_do_not_nest() -> None:
    with cuda_metal():
        with pytest.raises(RuntimeError, match="inside cuda_metal"), host_metal():
            pass
        kernel = mx.fast.metal_kernel(name="k", input_names=["a"], output_names=["out"], source="out[0] = a[0] + 1;")
        (y,) = kernel(inputs=[mx.ones((8,))], output_shapes=[(1,)], output_dtypes=[mx.float32], grid=(1, 1, 1),
                      threadgroup=(1, 1, 1))  # fmt: skip
        assert y.item() == 2
    assert not mx.metal.is_available()


STRAY = """
import mlx.core as mx
from mlx_assay.impl.executors import choice, metal_kernel, use
kernel = metal_kernel("wanders", ["a"], ["out"], "out[0] = *(const device float*)(a + (1ul << 40));")
with use("cuda"), choice.guarded():
    try:
        kernel(inputs=[mx.ones((8,))], output_shapes=[(1,)], output_dtypes=[mx.float32], grid=(1, 1, 1),
               threadgroup=(1, 1, 1))
    except RuntimeError as error:
        print("told:", error, flush=True)
"""


def test_an_illegal_address_is_told_with_the_kernels_name() -> None:
    done = subprocess.run((sys.executable, "-c", STRAY), capture_output=True, text=True, timeout=120, check=False)
    assert "told: [metal_kernel] kernel 'wanders' on the cuda executor" in done.stdout, done.stdout + done.stderr
