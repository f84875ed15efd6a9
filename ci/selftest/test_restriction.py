"""What Metal refuses is refused with the author's line, and nothing is that Metal takes: MLX's own headers say so."""

from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import headers, use
from mlx_assay.impl.executors.kernel import metal_kernel
from mlx_assay.impl.executors.restriction import restrictions
from mlx_assay.impl.executors.rewriting import uncommented

POINTER, REFERENCE = (f"{kind} type must have explicit address space qualifier" for kind in ("pointer", "reference"))
PROGRAM, STATIC = (f"{kind} variable must reside in constant address space" for kind in ("program scope", "static"))
THREADGROUP = "non-kernel function variable cannot be declared in threadgroup address space"

HEADERS: dict[str, tuple[str, str | None]] = {
    "pointer": ("float f(const float* p, uint i) { return p[i]; }", POINTER),
    "pointer-with-space": ("float f(const device float* p, uint i) { return p[i]; }", None),
    "space-behind": ("float f(float const device* p, uint i) { return p[i]; }", None),
    "space-by-macro": ("#define SPACE device\nfloat f(const SPACE float* p, uint i) { return p[i]; }", None),
    "reference": ("void f(float& x) { x = 1; }", REFERENCE),
    "reference-to-constant": ("float f(const float4 & x) { return x.x; }", REFERENCE),
    "reference-with-space": ("void f(thread float& x) { x = 1; }", None),
    "second-parameter": ("void f(device float* p, uint* n) { *p = *n; }", POINTER),
    "own-type": ("struct Pair { float x; };\nfloat f(Pair& p) { return p.x; }", REFERENCE),
    "member": ("struct Node { uint* next; };", POINTER),
    "cast": ("uint f(device float* p) { return *(uint*)p; }", POINTER),
    "template": ("template <typename T> float f(thread T& x) { return x; }", None),
    "product": ("float f(float x, float y) { return float(x) * y + sizeof(float) * x; }", None),
    "mask": ("uint f(uint x) { return uint(x) & 3u; }", None),
    "alias": ("using pointer = device float*;", None),
    "comment": ("// float* p\n/* float& q; */\n", None),
    "conditional": ("#ifdef NOT_METAL\nfloat f(float* p) { return *p; }\n#endif\n", None),
    "variable": ("float G = 3;", PROGRAM),
    "constant-variable": ("constant float G = 3;", None),
    "const-variable": ("const float G = 3;", PROGRAM),
    "static-variable": ("static const float G = 3;", PROGRAM),
    "constexpr-variable": ("constexpr float G = 3;", PROGRAM),
    "constexpr-constant": ("constexpr constant float G = 3;", None),
    "table": ("const float T[2] = {1, 2};", PROGRAM),
    "constant-table": ("constant float T[2][2] = {{1, 2}, {3, 4}};", None),
    "in-namespace": ("namespace n {\nconstexpr int K = 4;\n}", PROGRAM),
    "member-variable": ("struct S { static constexpr constant int k = 3; float x = 1; int y; };", None),
    "local-variable": ("float f() { const float g = 3; constexpr int k = 4; float t[1] = {2}; return g + k; }", None),
    "declared-function": ("float f(uint x);\nfloat f(uint x) { return x; }", None),
    "local-static": ("float f() { static const float g = 3; return g; }", STATIC),
    "local-static-constant": ("float f() { static constant float g = 3; return g; }", None),
    "array-in-helper": ("float f() { threadgroup float z[4]; z[0] = 1; return z[0]; }", THREADGROUP),
    "pointer-in-helper": ("float f(threadgroup float* s) { threadgroup float* z = s + 1; return *z; }", None),
    "virtual": ("struct V { virtual float f() { return 1; } };", "virtual functions are not supported in Metal"),
    "goto": ("float f() { goto x; x: return 1; }", "Metal has no goto"),
    "assembly": ('void f() { asm volatile("nop"); }', "Metal has no assembly in a kernel's text"),
    "long-long": ("long long f() { return 1; }", "'long long' is not supported in Metal"),
    "double": ("double f() { return 1; }", "'double' is not supported in Metal"),
    "opencl": ("float f(__global float* p) { return *p; }", "a word of OpenCL"),
    "internal": ("uint f() { return sizeof(assay::Position); }", "use of undeclared identifier 'assay::Position'"),
    "union": ("union U { uint u; float f; };\nfloat f(uint x) { U u; u.u = x; return u.f; }", None),
    "kernel-in-header": ("kernel void k(device float* o [[buffer(0)]]) { threadgroup float s[4]; s[0] = o[0]; }", None),
    "array-of-thread": ("float f(thread float (&v)[4]) { return v[0]; }", None),
    "shift-and-mask": ("uint f(uint2 p, uint x) { return p.x * x + uint2(1).x & 3; }", None),
    "authors-own-name": ("namespace assay { float g() { return 1; } }\nfloat f() { return assay::g(); }", None),
    "value-of-void": ("void f() { return 3; }", "void function 'f' should not return a value"),
    "narrowing": ("int f(float x) { int y{x}; return y; }", "cannot be narrowed"),
}  # fmt: skip


def refusal(source: str = "out[0] = 1;", header: str = "", name: str = "restriction", **call: Any) -> str | None:
    kernel = metal_kernel(name, ["a"], ["out"], source, header)
    given: dict[str, Any] = {"inputs": [mx.arange(8.0)], "grid": (1, 1, 1), "threadgroup": (1, 1, 1)}
    given |= {"output_shapes": [(8,)], "output_dtypes": [mx.float32]}
    try:
        with use("host"):
            kernel(**given | call)
    except RuntimeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", HEADERS)
def test_headers(name: str) -> None:
    header, want = HEADERS[name]
    said = refusal(header=header + "\n")
    if want is None:
        assert said is None
    else:
        assert said is not None
        number, at = next((i, line) for i, line in enumerate(said.split("\n")) if want in line)
        line = int(at.partition("header line ")[2].partition(":")[0])
        assert said.split("\n")[number + 1].strip() == header.split("\n")[line - 1].strip()


def test_mlx_writes_nothing_that_is_refused() -> None:
    for name in headers.names():
        code = uncommented((headers.root() / headers.KERNELS / name).read_text())
        assert not restrictions(code), name
    assert len(headers.names()) > 50


BODIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "pointer": ("float* p = out;\n*p = 1;", ("source line 1: error: " + POINTER, "float* p = out;")),
    "static": ("static float v = 1;\nout[0] = v;", ("source line 1: error: " + STATIC,)),
    "threadgroup": ("threadgroup float s[4];\ns[0] = 1;\nout[0] = s[0];", ()),
    "nested-threadgroup": ("if (a[0] == 0) { threadgroup float s[4]; s[0] = 1; out[0] = s[0]; }", ()),
    "value": ("out[0] = 1;\nreturn 3;", ("source line 2: error: void function", "return 3;")),
    "words": ("bfloat b = a[0];", ("source line 1: error:", "'const device float' to 'thread bfloat'")),
    "vectors": ("float4 v = half4(1);", ("'thread vec<float, 4>'", "'vec<half, 4>'")),
    "array": ("threadgroup float s[4]; device float* p = s;", ("of type 'threadgroup float[4]'",)),
    "bits": ("\nout[0] = as_type<float>(half(1));", ("source line 2: error: as_type needs two types of one size",)),
    "atomic": (
        "\natomic_fetch_add_explicit((device atomic_ulong*)out, 1ul, memory_order_relaxed);",
        ("source line 2: error: atomic_fetch_add_explicit is not for atomics of this type",),
    ),
    "initialiser": ("threadgroup float s[2] = {0};\nout[0] = s[0];", ("a threadgroup variable takes no",)),
    "constant": ("\nconstant float k = 1;\nout[0] = k;", ("source line 2: error: a constant variable stands outside",)),
    "swizzle": ("bfloat2 v; v.xy = v.yx;", ("no member named 'xy' in 'bfloat2'",)),
    "double": ("double d = 1;\nout[0] = d;", ("source line 1: error: 'double' is not supported in Metal: use float",)),
    "open-brace": ("uint i = 0;\nif (a[0] == 0) {\n out[i] = 0;\n", ("source line 2: error: this '{' is not closed",)),
    "closed-brace": ("uint i = 0;\nout[i] = 0; }\n", ("source line 2: error: extraneous closing brace",)),
    "thread-local": ("thread_local float v = 1;", ("Metal does not support the 'thread_local'",)),
    "undefined": ("\nout[0] = missing(1.0f);", ("line 2: error: missing is declared and used, and nothing",)),
    "stack": ("float big[400000];\nfor (int k = 0; k < 400000; ++k) big[k] = a[k % 8];\nout[0] = big[int(a[1]) * 7];",
              ("bytes of private memory in one function", "at most")),
    "threadgroup-memory": ("threadgroup float s[1u << 30]; s[0] = 1; out[0] = s[0];", ("threadgroup memory",)),
    "threadgroup-memory-twice": (
        "threadgroup float s[1u << 29], u[1u << 29]; s[0] = 1; u[0] = 2; out[0] = s[0] + u[0];", ("threadgroup memory",)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_bodies(name: str) -> None:
    source, want = BODIES[name]
    said = refusal(source, "float missing(float x);\n" if name == "undefined" else "")
    assert (said is None) == (not want), said
    for part in want:
        assert part in (said or "")
    for internal in ("__", "assay", "OpenCL", "/tmp"):
        assert internal not in (said or "")


def test_names_that_are_none() -> None:
    said = refusal(name="a b")
    assert said is not None
    assert "'custom_kernel_a b_float_float': a kernel's name has letters, digits and _ alone" in said


def test_an_output_of_64_bits() -> None:
    said = refusal(output_dtypes=[mx.float64])
    assert said is not None
    assert "'double' is not supported in Metal: use float: in the generated signature, `device double* out" in said


def test_a_function_constant_without_a_value() -> None:
    said = refusal("out[0] = C;", "// constants\nconstant float C [[function_constant(3)]];\n")
    assert said is not None
    assert said.count("header line 2: error: function constant 3 (C) has no value: give it one") == 1
