"""Small programs as authors write them: structs, templates, unions, pointers between types; results by hand."""

import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import metal_kernel, use

HEADER = """#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
constant constexpr float kTable[4] = {1.0, 2.0, 3.0, 4.0};
constant half2 kPairs[2] = {half2(1, 2), half2(3, 4)};
enum class Mode : uint { A = 0, B = 1 };
struct Most {
  float m; float s;
  void add(float x) { m = max(m, x); s += x; }
  float mean(int n) const { return s / n; }
};
struct Sum {
  float m = -INFINITY; float s = 0;
  thread Sum& merge(thread const Sum& o) { m = max(m, o.m); s += o.s; return *this; }
};
template <typename T, int N> struct Tile {
  T v[N];
  T sum() const { T r = 0; for (int i = 0; i < N; ++i) r += v[i]; return r; }
  thread T& at(int i) { return v[i]; }
};
template <typename T> inline T square(T x) { return x * x; }
inline void swap(thread float& a, thread float& b) { float t = a; a = b; b = t; }
inline float4 load(const device float* p) { return *reinterpret_cast<const device float4*>(p); }
typedef struct { uint low : 4; uint high : 28; } Bits;
union Pun { uint u; float f; uchar4 c; };
template <int N> struct Factorial { enum { value = N * Factorial<N - 1>::value }; };
template <> struct Factorial<0> { enum { value = 1 }; };
#define UNROLL _Pragma("clang loop unroll(full)")
"""

# a[i] is i. Each body, and what the first four of 32 threads give.
PROGRAMS = [
    ("Most m = {-INFINITY, 0}; m.add(i); m.add(2); out[i] = m.mean(2) + m.m;", [3, 3.5, 4, 5.5]),
    ("Sum x, y; y.s = 3; y.m = 1; x.merge(y).merge(y); out[i] = x.s + x.m;", [7] * 4),
    ("Tile<float, 4> t; for (int k = 0; k < 4; k++) t.at(k) = kTable[k]; out[i] = t.sum();", [10] * 4),
    ("float4 v = load(a); v.xy += 1; v.zw *= float2(2, 3); v = v.wzyx; out[i] = v.x + dot(v, float4(1));", [25] * 4),
    ("float x = 1, y = i; swap(x, y); out[i] = x;", [0, 1, 2, 3]),
    ("Pun p; p.f = 1.0; out[i] = p.c.w + (p.u >> 23);", [63 + 127] * 4),
    ("Bits b; b.low = 19; b.high = i; out[i] = b.low + b.high + sizeof(Bits);", [7, 8, 9, 10]),
    ("out[i] = Factorial<5>::value + (uint)Mode::B;", [121] * 4),
    ("float4 v(1.0f); float4 w = (float4)(a[i]); float3 q = float3(v.x, w.yz); out[i] = q.z + v.y;", [1, 2, 3, 4]),
    ("float r[4] = {0}; UNROLL for (int k = 0; k < 4; k++) r[k] = square(kTable[k]); out[i] = r[0] + r[3];", [17] * 4),
    ("uint2 g = thread_position_in_grid.xy; out[i] = g.x + g.y;", [0, 1, 2, 3]),
    ("half2 h = as_type<half2>(as_type<uint>(kPairs[1])); out[i] = h.x + kPairs[0].y;", [5] * 4),
    ("auto f = [&](float x) -> float { return x * 2 + i; }; out[i] = f(a[i]);", [0, 3, 6, 9]),
    ("constexpr float c[4] = {1, 2, 3, 4}; float s = 0; for (int k = 0; k < 4; k++) s += c[k]; out[i] = s;", [10] * 4),
    ("int4 v = int4(1, -2, 3, -4); v = abs(v) << 1; v &= 7; out[i] = v.y + (v >> 1).w;", [4] * 4),
    ("bool4 b = float4(a[i]) > float4(1, 2, 3, 4); out[i] = any(b) ? 1 : all(!b) ? 2 : 3;", [2, 2, 1, 1]),
    (
        "bfloat16_t b = bfloat16_t(a[i]); b = b * bfloat16_t(2) + 1; out[i] = float(max(b, bfloat16_t(3)));",
        [3, 3, 5, 7],
    ),
    (
        "switch (int(a[i])) { case 0: out[i] = 1; break; case 1: case 2: out[i] = 2; break; default: out[i] = 3; }",
        [1, 2, 2, 3],
    ),
    ("long big = (long)1 << 40; size_t n = 5; ptrdiff_t d = -3; out[i] = float(big >> 38) + n + d;", [6] * 4),
    ("packed_float3 p = packed_float3(1, 2, 3); float3 q = p; q += float3(p) * 2; out[i] = q.x + p[2];", [6] * 4),
    ("const device packed_float3* p = (const device packed_float3*)a; out[i] = float3(p[1]).x;", [3] * 4),
    ("vec<float, 4> v = vec<float, 4>(1, 2, 3, 4); v[i % 4] = 9; out[i] = v[0] + v[3];", [13, 5, 5, 10]),
    ("float4 v[2] = {float4(1), float4(2)}; float4 s = v[0] + v[1]; out[i] = s.x + v[1].w;", [5] * 4),
    ("uint3 q = thread_position_in_grid + uint3(1, 2, 3); q = min(q, 5u); out[i] = q.z + q.x;", [4, 5, 6, 7]),
    (
        "char4 c = char4(127, -128, 1, 2); short4 s = short4(c) * short4(2); out[i] = s.x + s.y; out[i] += float(c.y);",
        [-130] * 4,
    ),
    ("complex64_t z = {1, 2}; z = z * z + complex64_t(1, 0); out[i] = z.real + z.imag;", [2] * 4),
    ("T x = T(a[i]); out[i] = x > T(1) ? T(1) : T(0);", [0, 0, 1, 1]),
    (
        "threadgroup float tile[8][5]; tile[i % 8][i % 5] = a[i]; threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "out[i] = tile[i % 8][i % 5];",
        [0, 1, 2, 3],
    ),
    (
        "threadgroup Sum s[2]; if (i == 0) { s[0].s = 1; s[0].m = 2; }\n"
        "threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = s[0].s + s[0].m;",
        [3] * 4,
    ),
    (
        "threadgroup float4 t[32]; t[i] = float4(a[i]); threadgroup_barrier(mem_flags::mem_threadgroup);\n"
        "threadgroup float* p = (threadgroup float*)t; out[i] = p[i * 4 + 1];",
        [0, 1, 2, 3],
    ),
]


@pytest.mark.parametrize(("body", "want"), PROGRAMS)
def test_program(body: str, want: list[float]) -> None:
    kernel = metal_kernel("program", ["a"], ["out"], f"uint i = thread_position_in_grid.x;\n{body}", HEADER)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[mx.arange(32).astype(mx.float32)],
            template=[("T", mx.float32)],
            output_shapes=[(32,)],
            output_dtypes=[mx.float32],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
        )
    assert np.array(out)[:4].tolist() == want
