"""Names that a table cannot hold: atomics, matrices, function constants, headers; and those that are not offered."""

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import headers, metal_kernel, use
from mlx_assay.impl.executors.rewriting import function_constants


def run(
    source: str,
    shape: Sequence[int] = (32,),
    dtype: Any = mx.float32,
    inputs: Sequence[Any] = (),
    header: str = "",
    threads: int = 32,
    **options: Any,
) -> np.ndarray[Any, Any]:
    names = list("abcd"[: len(inputs)])
    kernel = metal_kernel("names", names, ["out"], f"uint i = thread_position_in_grid.x;\n{source}", header, **options)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=list(inputs),
            output_shapes=[tuple(shape)],
            output_dtypes=[dtype],
            grid=(threads, 1, 1),
            threadgroup=(threads, 1, 1),
            init_value=0,
        )
    return np.array(out)


RELAXED = "memory_order_relaxed"


@pytest.mark.parametrize(
    ("statement", "want"),
    [
        ("atomic_fetch_add_explicit(&c, i + 1, O);", 528),
        ("atomic_fetch_sub_explicit(&c, i + 1, O);", 2**32 - 528),
        ("atomic_fetch_max_explicit(&c, i, O);", 31),
        ("atomic_fetch_min_explicit(&c, i, O);", 0),
        ("atomic_fetch_or_explicit(&c, 1u << i, O);", 2**32 - 1),
        ("atomic_fetch_and_explicit(&c, i, O);", 0),
        ("atomic_fetch_xor_explicit(&c, i + 1, O);", 32),
        ("if (i == 3) atomic_store_explicit(&c, 7u, O);", 7),
        ("if (i == 3) atomic_exchange_explicit(&c, 7u, O);", 7),
        ("uint seen = 5; if (i == 3) atomic_compare_exchange_weak_explicit(&c, &seen, 7u, O, O);", 0),
        ("uint seen = 0; if (i == 3) atomic_compare_exchange_weak_explicit(&c, &seen, 7u, O, O);", 7),
    ],
)
@pytest.mark.parametrize("space", ["device", "threadgroup"])
def test_atomics_of_integers(statement: str, want: int, space: str) -> None:
    if space == "device":
        body, options = statement.replace("&c", "&out[0]"), {"atomic_outputs": True}
    else:
        body = (
            "threadgroup atomic_uint c; if (i == 0) atomic_store_explicit(&c, 0u, O);\n"
            f"threadgroup_barrier(mem_flags::mem_threadgroup);\n{statement}\n"
            "threadgroup_barrier(mem_flags::mem_threadgroup);\nif (i == 0) out[0] = atomic_load_explicit(&c, O);"
        )
        options = {}
    got = run(body.replace("O)", f"{RELAXED})").replace("O,", f"{RELAXED},"), (1,), mx.uint32, **options)
    assert got.tolist() == [want]


def test_atomics_of_floats_and_bools() -> None:
    body = f"atomic_fetch_add_explicit(&out[0], 0.5f, {RELAXED}); atomic_fetch_sub_explicit(&out[1], 0.25f, {RELAXED});"
    assert run(body, (2,), atomic_outputs=True).tolist() == [16, -8]
    flag = f"if (i == 9) atomic_store_explicit(&out[0], true, {RELAXED});"
    assert run(flag, (1,), mx.bool_, atomic_outputs=True).tolist() == [True]


def test_atomics_of_64_bits() -> None:
    largest = f"atomic_max_explicit(&out[0], ulong(i) << 33, {RELAXED});"
    assert run(largest, (1,), mx.uint64, atomic_outputs=True).tolist() == [31 << 33]
    smallest = (
        f"if (i == 0) atomic_max_explicit(&out[0], ~0ul, {RELAXED});\natomic_min_explicit(&out[0], i + 3ul, {RELAXED});"
    )
    assert run(smallest, (1,), mx.uint64, atomic_outputs=True).tolist() == [3]


def test_fences_and_barriers() -> None:
    flags = (
        "mem_none",
        "mem_device",
        "mem_threadgroup",
        "mem_texture",
        "mem_threadgroup_imageblock",
        "mem_object_data",
    )
    body = "".join(f"threadgroup_barrier(mem_flags::{f}); simdgroup_barrier(mem_flags::{f});\n" for f in flags)
    body += "threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup);\n"
    body += "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);\nout[i] = i;"
    assert run(body).tolist() == list(range(32))


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_simdgroup_matrices(dtype: Any) -> None:
    kind = {mx.float32: "float", mx.float16: "half", mx.bfloat16: "bfloat"}[dtype]
    rng = np.random.default_rng(1)
    # Small integers: every sum is exact in every order.
    a, b, c = (rng.integers(-4, 5, (8, 8)).astype(np.float32) for _ in "abc")
    body = (
        f"simdgroup_matrix<{kind}, 8, 8> A, B, C, D; simdgroup_{kind}8x8 E = A;\n"
        "simdgroup_load(A, a, 8); simdgroup_load(B, b, 8, ulong2(0, 0), true); simdgroup_load(C, c);\n"
        "simdgroup_multiply_accumulate(D, A, B, C); simdgroup_multiply(E, A, B);\n"
        f"threadgroup {kind} t[64]; simdgroup_store(E, t, 8); simdgroup_barrier(mem_flags::mem_threadgroup);\n"
        "simdgroup_load(E, t, 8); E.thread_elements()[1] += 1;\n"
        "simdgroup_store(D, out, 8); simdgroup_store(E, out + 64, 8, ulong2(0, 0), true);\n"
        f"simdgroup_store(simdgroup_matrix<{kind}, 8, 8>({kind}(3)), out + 128);\n"
        f"simdgroup_store(make_filled_simdgroup_matrix<{kind}, 8>({kind}(2)), out + 192);"
    )
    inputs = [mx.array(x).astype(dtype) for x in (a, b, c)]
    kernel = metal_kernel("matrices", ["a", "b", "c"], ["out"], body)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=inputs, output_shapes=[(4, 8, 8)], output_dtypes=[dtype], grid=(32, 1, 1), threadgroup=(32, 1, 1)
        )
    got = np.array(out.astype(mx.float32))
    product = a @ b.T
    odd = np.tile([0, 1], (8, 4))
    want = np.stack([product + c, (product + odd).T, 3 * np.eye(8), np.full((8, 8), 2)])
    assert np.array_equal(got, want)


def test_function_constants() -> None:
    header = (
        "constant bool twice [[function_constant(0)]];\nconstant int added [[function_constant(7)]];\n"
        "constant float absent [[function_constant(8)]];\n"
    )
    body = "float x = i; if (is_function_constant_defined(absent)) x = absent; out[i] = (twice ? x * 2 : x) + added;"
    for twice, added in ((True, 3), (False, -1)):
        given = function_constants({0: twice, 7: added}) + header
        assert run(body, header=given).tolist() == [i * (1 + twice) + added for i in range(32)]
    with pytest.raises(RuntimeError, match=r"function constant 7 \(added\) has no value: give it one"):
        run(body, header=function_constants({0: True}) + header)


# Each is in Metal's specification or looks as if it were, and is not offered here.
@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("texture2d<float> t;", "texture2d"),
        ("sampler s;", "sampler"),
        ("out[i] = metal::erf(1.0f);", "erf"),
        ("out[i] = metal::simd_shuffle_magic(1.0f, 2);", "simd_shuffle_magic"),
        ("out[i] = simd_median(1.0f);", "simd_median"),
        ("out[i] = pack_float_to_srgb_unorm4x8(float4(1));", "pack_float_to_srgb_unorm4x8"),
        ("out[i] = metal::permute(1u, 2u);", "permute"),
        ("imageblock<float> b;", "imageblock"),
        ("cooperative_tensor<float> t;", "cooperative_tensor"),
        ("packed_bool3 b;", "packed_bool3"),
        ("atomic<long> x;", "Metal's atomics are of int, uint, float, bool and ulong"),
        ("out[i] = simd_sum(double(1));", "double"),
        ("out[i] = simd_xor(1.0f);", "simd_xor takes integers"),
        ("out[i] = simd_sum(1l);", "simd_sum takes a number of 32 bits or fewer"),
        ("out[i] = quad_shuffle(1ul, 0);", "quad_shuffle takes a number of 32 bits or fewer"),
        ("out[i] = max(1, 2u);", "max"),
        ("out[i] = (i > 3 ? float4(1) : half4(1)).x;", "implicit conversions"),
        (
            "threadgroup atomic_float c; atomic_fetch_max_explicit(&c, 1.0f, memory_order_relaxed);",
            "atomic_fetch_max_explicit is not",
        ),
        (
            "threadgroup atomic_uint c; atomic_load_explicit(&c, memory_order_seq_cst);",
            "Metal's atomics take memory_order_relaxed",
        ),
        (
            "threadgroup atomic_ulong c; atomic_load_explicit(&c, memory_order_relaxed);",
            "atomic_load_explicit is not for atomic_ulong",
        ),
        ("simdgroup_matrix<int, 8, 8> m;", "of float, half and bfloat"),
        ("simdgroup_matrix<float, 4, 4> m;", "8 x 8"),
        ("out[i] = as_type<half>(1.0f);", "as_type needs two types of one size"),
        ("out[i] = cross(float2(1), float2(2)).x;", "cross takes vectors of three"),
        ("#include <metal_tensor>\nout[i] = 0;", "metal_tensor"),
    ],
)
def test_what_is_not_offered_is_named(body: str, name: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        run(body)
    assert f"does not compile on the {EXECUTOR} executor" in str(caught.value)
    assert name in str(caught.value)


def test_math_modes() -> None:
    # exp(90) + 1 is inf: the fast tanh is inf over inf. Beyond it nothing is assumed of NaN in any mode.
    body = (
        "float x = metal::tanh(45.0f + i * 0.0f); out[i] = i == 0 ? x : isnan(NAN * (i + 1.0f)) + isinf(INFINITY * i);"
    )
    for mode, first in (("safe", 1.0), ("relaxed", float("nan")), ("fast", float("nan"))):
        got = run(body, compile_options={"math_mode": mode})
        assert np.array_equal(got[:1], [first], equal_nan=True)
        assert got[1:].tolist() == [2.0] * 31


DEDUCED = "template <typename T> METAL_FUNC T last(vec<T, 4> v) { return v[3]; }\n"
APPLIED = (
    "METAL_FUNC void twice(thread float* x) { *x *= 2; }\ntypedef void (*F)(thread float*);\n"
    "template <KIND f> METAL_FUNC float apply(float x) { f(&x); return x; }\n"
)
MEMBERS = "struct Pair { float x, y; };\n"


@pytest.mark.parametrize(
    ("header", "body", "differs"),
    [
        (DEDUCED, "out[i] = last(float4(1, 2, 3, 4));", "out[i] = last(bfloat4(1, 2, 3, 4));"),
        ("", "int k = int(bfloat(4.0f)); out[i] = k;", "int k = bfloat(4.0f); out[i] = k;"),
        (APPLIED, "#define KIND auto\n", "#define KIND F\n"),
        (
            MEMBERS,
            "const constant Pair* p = (const constant Pair*)b; out[i] = p->x;",
            "const constant Pair* p = (const constant Pair*)b; Pair q = *p; out[i] = q.x;",
        ),
    ],
)
def test_what_the_page_says_differs(header: str, body: str, differs: str) -> None:
    def inside(text: str) -> Any:
        if header is APPLIED:
            return run("out[i] = apply<twice>(2.0f);", header=text + header)
        return run(text, header=header, inputs=[mx.zeros(8), mx.full((2,), 4.0)])

    assert inside(body).tolist() == [4.0] * 32
    with pytest.raises(RuntimeError, match=f"does not compile on the {EXECUTOR} executor"):
        inside(differs)


@pytest.mark.parametrize("name", [n for n in headers.names() if headers.unreachable(n)])
def test_a_header_out_of_reach_is_an_error(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"does not compile on the {EXECUTOR} executor"):
        run("out[i] = 0;", header=headers.including(name))


def test_headers_of_mlx() -> None:
    """Every other header can be included, all of those that MLX itself puts together at once."""
    for name in (n for n in headers.names() if not headers.unreachable(n)):
        assert run("out[i] = i;", (2,), header=headers.including(name), threads=2).tolist() == [0, 1], name
