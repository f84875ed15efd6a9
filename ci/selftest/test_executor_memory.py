"""Memory on the host executor: address spaces, threadgroup arrays, poison, strides, and inputs that stay themselves."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import metal_kernel, poison, use

INDEX = "uint i = thread_position_in_grid.x;\n"


def run(source: str, inputs: list[mx.array], n: int, dtype: Any = mx.float32, **options: Any) -> mx.array:
    call = {k: options.pop(k) for k in ("template", "init_value", "threadgroup") if k in options}
    kernel = metal_kernel("memory", list("abcd"[: len(inputs)]), ["out"], INDEX + source, **options)
    call.setdefault("threadgroup", (n, 1, 1))
    with use(EXECUTOR):
        (out,) = kernel(inputs=inputs, output_shapes=[(n,)], output_dtypes=[dtype], grid=(n, 1, 1), **call)
    return out


def test_a_helper_of_device_pointers_takes_eight_elements_and_not_seven() -> None:
    header = "inline float first(const device float* p) { return p[0]; }\n"
    assert run("out[i] = first(a);", [mx.full((8,), 2.0)], 8, header=header).tolist() == [2.0] * 8
    with pytest.raises(RuntimeError, match=r"(?s)'memory' does not compile.*source line 2.*no matching function"):
        run("out[i] = first(a);", [mx.full((7,), 2.0)], 8, header=header)


@pytest.mark.parametrize(
    "body",
    [
        "threadgroup float s[4]; device float* p = s; out[i] = p[0];",
        "threadgroup float s[4]; constant float* p = s; out[i] = p[0];",
        "threadgroup float* p = out; out[i] = p[0];",
        "float x = 1; device float* p = &x; out[i] = p[0];",
        "device float* p = a; out[i] = p[0];",
        "a[i] = 1; out[i] = 0;",
        "b = 1; out[i] = 0;",
        "c[0] = 1; out[i] = 0;",
    ],
)
def test_address_spaces_do_not_mix_and_inputs_are_const(body: str) -> None:
    with pytest.raises(RuntimeError, match="does not compile"):
        run(body, [mx.zeros((8,)), mx.array(1.0), mx.zeros((3,))], 8)


def test_inputs_stay_as_they_are() -> None:
    before = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
    x = mx.array(before)
    run("out[i] = a[i] * 2.0f;", [x], 4096, threadgroup=(256, 1, 1))
    run("out[i] = a[(i * 7) % 4096];", [x], 4096, threadgroup=(256, 1, 1))
    assert np.array(x).tobytes() == before.tobytes()


@pytest.mark.parametrize("pattern", [0x00000000, 0x7FC00000, 0xA1B2C3D4])
@pytest.mark.parametrize("dtype", [mx.float32, mx.uint8, mx.float16, mx.int64])
def test_poison_fills_outputs(pattern: int, dtype: Any) -> None:
    size = {mx.float32: 4, mx.uint8: 1, mx.float16: 2, mx.int64: 8}[dtype]
    with poison(pattern):
        out = run("if (i == 0) out[i] = 1;", [], 33, dtype)
    raw = np.array(out.view(mx.uint8)).tobytes()
    assert raw[size:] == (pattern.to_bytes(4, "little") * 80)[size : 33 * size]
    with poison(pattern):
        initialised = np.array(run("if (i == 0) out[i] = 1;", [], 33, dtype, init_value=5))
        assert initialised.tolist() == [1] + [5] * 32


@pytest.mark.parametrize("pattern", [0x00000000, 0xA1B2C3D4])
def test_poison_fills_the_memory_of_every_threadgroup(pattern: int) -> None:
    body = (
        "threadgroup uint s[32]; threadgroup uint t[2][3]; uint j = thread_index_in_threadgroup;"
        "out[i] = s[j] & t[1][j % 3]; s[j] = 1; t[1][j % 3] = 1;"
    )
    with poison(pattern):
        # Thread j + 3 of a threadgroup sees what thread j wrote, so only the first three are held to the poison.
        got = np.array(run(body, [], 128, mx.uint32, threadgroup=(32, 1, 1)))
    assert [got[32 * g + j] for g in range(4) for j in range(3)] == [pattern] * 12


def test_an_unwritten_output_is_never_the_last_ones() -> None:
    first = run("out[i] = 3.0f;", [], 64)
    assert first.tolist() == [3.0] * 64
    assert np.isnan(np.array(run("if (i > 99) out[i] = 1;", [], 64))).all()


def test_no_wrong_poison() -> None:
    with pytest.raises(ValueError, match="32-bit"), poison(2**32):
        pass


@pytest.mark.parametrize(("elements", "fits"), [(8192, True), (8193, False)])
def test_threadgroup_memory_is_32_kib(elements: int, fits: bool) -> None:
    body = f"threadgroup float s[{elements}]; s[i] = i; s[{elements} - 1 - i] = i; out[i] = s[i];"
    if fits:
        assert run(body, [], 32).tolist() == list(range(32))
    else:
        with pytest.raises(RuntimeError, match="32784 bytes of threadgroup memory"):
            run(body, [], 32)


def test_threadgroup_declarations() -> None:
    body = """
      // threadgroup float unused[4];
      constexpr int N = 4 * 8;
      threadgroup T s[N], t[2][N + 1];  /* threadgroup here; */
      threadgroup float one;
      alignas(16) threadgroup float4 v[N];
      if (i == 0) one = 5;
      {
        threadgroup uint inner[(N)];
        inner[i] = i;
        s[i] = T(inner[i]);
      }
      t[1][i] = s[i] + T(1);
      v[i] = float4(i, 2, 3, 4);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      threadgroup T* p = &t[1][0];
      out[i] = float(p[(i + 1) % N]) + one + v[i].w;"""
    for dtype in (mx.float32, mx.float16, mx.bfloat16):
        assert run(body, [], 32, template=[("T", dtype)]).tolist() == [(i + 1) % 32 + 1 + 5 + 4 for i in range(32)]


def test_vectors_need_no_alignment_that_mlx_does_not_give() -> None:
    for kind, dtype in (("float4", mx.float32), ("half4", mx.float16), ("uchar4", mx.uint8)):
        body = f"const device {kind}* p = (const device {kind}*)a; ((device {kind}*)out)[i] = p[i].wzyx;"
        x = mx.arange(64).astype(dtype)
        kernel = metal_kernel("vectors", ["a"], ["out"], INDEX + body)
        with use(EXECUTOR):
            (out,) = kernel(
                inputs=[x], output_shapes=[(64,)], output_dtypes=[dtype], grid=(16, 1, 1), threadgroup=(16, 1, 1)
            )
        assert out.tolist() == np.arange(64).reshape(16, 4)[:, ::-1].reshape(-1).tolist()


def views() -> dict[str, mx.array]:
    x = mx.arange(60).astype(mx.float32).reshape(3, 4, 5)
    return {
        "contiguous": x,
        "transposed": x.transpose(2, 0, 1),
        "every-second": x[:, ::2],
        "offset": x[1:, 1:],
        "reversed": x[::-1, :, ::-1],
        "broadcast": mx.broadcast_to(x[:1], (3, 4, 5)),
        "matrix": x[0],
        "column": x[:, :, 2],
    }


@pytest.mark.parametrize("name", views())
@pytest.mark.parametrize("contiguous", [True, False])
def test_views(name: str, contiguous: bool) -> None:
    x = views()[name]
    body = "out[i] = a[i];" if contiguous else "out[i] = a[elem_to_loc(long(i), a_shape, a_strides, a_ndim)];"
    out = run(body, [x], x.size, ensure_row_contiguous=contiguous)
    assert out.tolist() == np.array(x).reshape(-1).tolist()


def test_strides_are_real() -> None:
    x = mx.arange(24).reshape(4, 6).T
    body = "out[i] = i == 0 ? a_shape[0] : i == 1 ? a_shape[1] : i == 2 ? int(a_strides[0]) : int(a_strides[1]);"
    assert run(body, [x], 4, mx.int32, ensure_row_contiguous=False).tolist() == [6, 4, 1, 6]
    assert run(body, [x], 4, mx.int32, ensure_row_contiguous=True).tolist() == [6, 4, 4, 1]


def test_positions_of_two_and_three_axes() -> None:
    # x is the fastest axis: position (1, 2) of a (3, 5) array with strides (5, 1) is row 2, column 1.
    x = mx.arange(15).reshape(3, 5)
    body = (
        "uint at = i == 0 ? elem_to_loc_2(uint2(1, 2), a_strides) : elem_to_loc(uint3(4, 1, 0), a_shape, a_strides, 2);"
        "out[i] = a[at];"
    )
    assert run(body, [x], 2, mx.int32, ensure_row_contiguous=False).tolist() == [2 * 5 + 1, 5 + 4]
    y = mx.arange(24).reshape(2, 3, 4)
    body = "out[i] = a[elem_to_loc_3(uint3(3, 2, 1), a_strides)];"
    assert run(body, [y], 1, mx.int32, ensure_row_contiguous=False).tolist() == [23]


def test_dtypes_pass_through() -> None:
    values: dict[Any, list[Any]] = {
        mx.bool_: [True, False],
        mx.int8: [-128, 127],
        mx.uint8: [0, 255],
        mx.int16: [-32768, 32767],
        mx.uint16: [0, 65535],
        mx.int32: [-(2**31), 2**31 - 1],
        mx.uint32: [0, 2**32 - 1],
        mx.int64: [-(2**63), 2**63 - 1],
        mx.uint64: [0, 2**64 - 1],
        mx.float16: [1.5, -2.0],
        mx.bfloat16: [1.5, -2.0],
        mx.float32: [1.5, -2.0],
    }
    for dtype, pair in values.items():
        x = mx.array(np.array(pair * 5, np.uint64)) if dtype == mx.uint64 else mx.array(pair * 5, dtype=dtype)
        assert run("out[i] = a[i];", [x], 10, dtype).tolist() == pair * 5


def test_bits_pass_through() -> None:
    words = np.arange(65536, dtype=np.uint16)
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        x = mx.array(words.view(dtype))
        out = run("out[i] = a[i];", [x], 65536, x.dtype, threadgroup=(256, 1, 1))
        assert np.array_equal(np.array(out.view(mx.uint16)), words)


@pytest.mark.skipif(sys.platform != "linux", reason="mappings are counted in /proc")
def test_what_many_launches_at_once_took_is_given_back() -> None:
    """Stacks with their guard pages are two thousand mappings a launch, of 65,530 that Linux allows a process."""
    source = (
        "uint t = thread_position_in_threadgroup.x; float a = x[t];"
        "for (int i = 0; i < 300; i++) { threadgroup_barrier(mem_flags::mem_threadgroup); a += 1; } y[t] = a;"
    )
    kernel = metal_kernel("many", ["x"], ["y"], source)
    x = mx.zeros((1024,))
    mx.eval(x)

    def launch(_: int) -> float:
        with use(EXECUTOR):
            (y,) = kernel(
                inputs=[x],
                grid=(1024, 1, 1),
                threadgroup=(1024, 1, 1),
                output_shapes=[(1024,)],
                output_dtypes=[x.dtype],
            )
        return float(y[-1].item())

    with ThreadPoolExecutor(24) as pool:
        assert list(pool.map(launch, range(96))) == [300.0] * 96
    assert len(Path("/proc/self/maps").read_text().splitlines()) < 9 * 2100 + 5000
