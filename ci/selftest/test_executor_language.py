"""Metal's language on the host executor: what compiles means what it means on Metal; no more compiles."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import metal_kernel, use
from mlx_assay.impl.executors.rewriting import rewrite

INDEX = "uint i = thread_position_in_grid.x;\n"


def run(source: str, n: int = 8, header: str = "", dtype: Any = mx.float32, **call: Any) -> list[Any]:
    inputs = call.pop("inputs", [])
    kernel = metal_kernel("language", list("abcd"[: len(inputs)]), ["out"], source, header)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=inputs, output_shapes=[(n,)], output_dtypes=[dtype], grid=(n, 1, 1), threadgroup=(n, 1, 1), **call
        )
    return list(np.array(out.astype(mx.float32)).tolist())


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("float4(1, 2, 3, 4).wzyx.x", 4),
        ("float4(float2(5, 6), 7, 8).y", 6),
        ("float4(2.5).z", 2.5),
        ("float3(1, float2(2, 3)).z", 3),
        ("float4(int4(1, 2, 3, 4)).w", 4),
        ("vec<float, 4>(1, 2, 3, 9).w", 9),
        ("vec<half, 2>(vec<half, 4>(1, 2, 3, 4).zw).x", 3),
        ("float4(1, 2, 3, 4).rgba.g", 2),
        ("dot(float3(1, 2, 3), float3(4, 5, 6))", 32),
        ("max(float4(1, 5, 2, 6), float4(3)).y", 5),
        ("float(bfloat4(1, 2, 3, 4).z)", 3),
        ("clamp(7.0f, 1.0f, 5.0f)", 5),
        ("select(1.0f, 2.0f, true)", 2),
        ("metal::abs(-3)", 3),
        ("popcount(0xf0fu)", 8),
        ("clz(1u)", 31),
        ("clz(0u)", 32),
        ("ctz(8u)", 3),
        ("clz(ushort(1))", 15),
        ("mulhi(0x80000000u, 4u)", 2),
        ("rotate(0x80000001u, 1u)", 3),
        ("reverse_bits(1u) >> 31", 1),
        ("extract_bits(0xabcdu, 4, 8)", 0xBC),
        ("absdiff(uchar(3), uchar(10))", 7),
        ("metal::rint(2.5f)", 2),
        ("metal::round(2.5f)", 3),
        ("metal::trunc(-2.7f)", -2),
        ("metal::fract(2.25f)", 0.25),
        ("metal::sign(-4.0f)", -1),
        ("metal::fma(2.0f, 3.0f, 4.0f)", 10),
        ("metal::exp2(3.0f)", 8),
        ("metal::ldexp(1.5f, 3)", 12),
        ("metal::pow(2.0f, 10.0f)", 1024),
        ("metal::rsqrt(0.25f)", 2),
        ("metal::copysign(3.0f, -0.0f)", -3),
        ("numeric_limits<float>::max() == FLT_MAX", 1),
        ("Limits<int>::max == INT_MAX", 1),
        ("Limits<float>::max == INFINITY", 1),
        ("ceildiv(10, 4)", 3),
        ("is_same_v<float16_t, half>", 1),
        ("sizeof(bfloat16_t)", 2),
        ("sizeof(packed_float4) + alignof(packed_float4)", 20),
        ("as_type<int>(-0.0f) == INT_MIN", 1),
    ],
)
def test_expressions(expression: str, want: float) -> None:
    assert run(f"out[thread_position_in_grid.x] = {expression};") == [want] * 8


def test_vectors_in_memory() -> None:
    source = (
        INDEX + "float4 v = 0; v.xy = float2(1, 2); v.w = v[1] + 3; thread float4& r = v; r.z = 7; out[i] = v[i % 4];"
    )
    assert run(source) == [1, 2, 7, 5] * 2


def test_templates_reach_the_body() -> None:
    source = INDEX + "T x = T(N); if (B) x += T(1); out[i] = float(x) + sizeof(T);"
    for dtype, size in ((mx.float16, 2), (mx.bfloat16, 2), (mx.float32, 4), (mx.int32, 4), (mx.uint8, 1)):
        for flag in (True, False):
            template = [("T", dtype), ("N", 5), ("B", flag)]
            assert run(source, template=template) == [5 + flag + size] * 8
    assert run(INDEX + "out[i] = N;", template=[("N", -3)]) == [-3] * 8


def test_headers() -> None:
    header = """#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;
#define SQUARE(x) ((x) * (x))
constant float table[3] = {1, 2.5, 4};
constant constexpr uint three = 3;
template <typename T>
METAL_FUNC T twice(T x) { return x * 2; }
struct Pair { float a; float b; };
inline float sum(thread const Pair& p) { return p.a + p.b; }
"""
    source = INDEX + "Pair p = {table[1], SQUARE(three)}; out[i] = twice(sum(p));"
    assert run(source, header=header) == [23] * 8


def test_names_that_are_keywords_elsewhere() -> None:
    assert (
        run(INDEX + "float local = 1, global = 2, generic = 3, pipe = 4; out[i] = local + global + generic + pipe;")
        == [10] * 8
    )


def test_a_lambda_and_a_switch() -> None:
    source = (
        INDEX
        + "auto f = [&](float x) { return x + i; };\n"
        + "switch (i % 2) { case 0: out[i] = f(1); break; default: out[i] = 0; }"
    )
    assert run(source) == [1, 0, 3, 0, 5, 0, 7, 0]


MASKED = INDEX + "bool bit = i & 1;\nT x = a[i];\nout[i] = bit ? x : -INFINITY;"


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16])
def test_float_becomes_half_implicitly(dtype: Any) -> None:
    got = run(MASKED, dtype=dtype, inputs=[mx.ones((8,)).astype(dtype)], template=[("T", dtype)])
    assert got == [-float("inf"), 1] * 4


def test_float_becomes_bfloat_only_explicitly() -> None:
    x = mx.ones((8,)).astype(mx.bfloat16)
    with pytest.raises(RuntimeError, match=r"(?s)source line 4:.*\n    out\[i\] = bit \? x : -INFINITY;"):
        run(MASKED, dtype=mx.bfloat16, inputs=[x], template=[("T", mx.bfloat16)])
    explicit = MASKED.replace("-INFINITY", "T(-INFINITY)")
    assert run(explicit, dtype=mx.bfloat16, inputs=[x], template=[("T", mx.bfloat16)]) == [-float("inf"), 1] * 4


@pytest.mark.parametrize(
    "body",
    [
        "bfloat x = 1.5f; out[i] = x;",
        "bfloat x = half(1.5h); out[i] = x;",
        "half h = bfloat(1.0f); out[i] = h;",
        "bfloat x = bfloat(1); x += 0.5f; out[i] = x;",
        "double d = 1; out[i] = 0;",
        "out[i] = std::max(1.0f, 2.0f);",
        "out[i] = fminf(1.0f, 2.0f);",
        "atomic<long> x; out[i] = 0;",
        "simdgroup_matrix<float, 4, 4> m; out[i] = 0;",
        "out[i] = simd_sum(ulong(i));",
        "out[i] = simd_shuffle_xor(long(i), 1);",
        "out[i] = no_such_function(i);",
        "out[i] = nowhere;",
        "out[i] = float4(1, 2, 3).x;",
        "out[i] = float4(1, 2, 3, 4, 5).x;",
        "out[i] = as_type<half>(1.0f);",
    ],
)
def test_what_must_not_compile(body: str) -> None:
    with pytest.raises(RuntimeError, match=f"kernel 'language' does not compile on the {EXECUTOR} executor"):
        run(INDEX + body)


def test_an_error_shows_the_authors_own_line() -> None:
    with pytest.raises(RuntimeError) as caught:
        run(INDEX + "threadgroup float s[4];\nfloat x = 0.5 * /* here */ missing(i);\nout[i] = x;")
    assert str(caught.value).endswith(
        "source line 3: error: use of undeclared identifier 'missing'\n    float x = 0.5 * /* here */ missing(i);"
    )
    with pytest.raises(RuntimeError, match=r"header line 2: error: .*\n    inline float f\(\) \{ return g\(\); \}"):
        run(INDEX + "out[i] = f();", header="// one\ninline float f() { return g(); }\n")


@pytest.mark.parametrize(
    ("metal", "want"),
    [
        ("x = 1.5 + 2.f + 3. + .5e-3 + 1e9 + 7;", "x = 1.5f + 2.f + 3.f + .5e-3f + 1e9f + 7;"),
        ("v.x + a1.y + 0x1p3 + 0xff + 1.5h", "v.x + a1.y + 0x1p3f + 0xff + 1.5h"),
        ("y = 1.5bf; z = 2bf;", "y = bfloat(1.5f); z = bfloat(2.0f);"),
        ("// 1.5\nx", " \nx"),
        (
            "vec<T, 4>(1) + vec<vec<A, 2>, 3>(x); vec<T, 4> y;",
            "make_vec<T, 4>(1) + make_vec<vec<A, 2>, 3>(x); vec<T, 4> y;",
        ),
        ("#pragma METAL fp contract(off)\nx", "#pragma clang fp contract(off)\nx"),
        ("#pragma METAL internals : enable\nx", "\nx"),
        ("void f(threadgroup float* p, device int* q);", "void f(threadgroup float* p, device int* q);"),
        ("x; threadgroup float* p = s;", "x; threadgroup float* p = s;"),
    ],
)
def test_rewriting(metal: str, want: str) -> None:
    assert rewrite(metal) == want


def test_choices_between_address_spaces() -> None:
    source = (
        INDEX + "bfloat x = a[i]; const bfloat y = b[0]; threadgroup bfloat s[8]; s[i] = x;\n"
        "bfloat p = i < 2 ? a[i] : x; bfloat q = i < 3 ? y : bfloat(9);\n"
        "bfloat r = i < 4 ? s[i] : i < 6 ? b[1] : a[i];\n"
        "out[i] = float(p) + 16 * float(q) + 256 * float(r);"
    )
    a, b = mx.arange(8).astype(mx.bfloat16), mx.array([3, 5]).astype(mx.bfloat16)
    want = [i + 16 * (3 if i < 3 else 9) + 256 * (i if i < 4 else 5 if i < 6 else i) for i in range(8)]
    assert run(source, inputs=[a, b]) == want


def test_rewriting_keeps_line_numbers() -> None:
    text = "a;\n/* one\ntwo */ threadgroup float x[4],\n  y[2];\n// three\nb;"
    assert rewrite(text).count("\n") == text.count("\n")
    assert rewrite(text).endswith("\nb;")
