"""Whole kernels from text: how buffers, attributes, function constants, host names and templates are read."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_assay.impl.executors.objects import CompilationError
from mlx_assay.impl.executors.stock import StockLibrary, TextLibrary
from mlx_assay.impl.executors.stock.function import chosen, functions, split

TEXT = """
constant int factor [[function_constant(3)]];
constant bool shifted [[function_constant(4)]];

template <typename T, int N = 2>
[[kernel]] void scale(
    device T* out [[buffer(2)]],
    const device T* in,
    constant const T& offset [[buffer(5), function_constant(shifted)]],
    constant const uint2& size [[buffer(7)]],
    ushort2 at [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  if (at.x < size.x && at.y < size.y) {
    const uint i = at.y * size.x + at.x;
    out[i] = in[i] * T(factor * N) + (shifted ? offset : T(0)) + T(lane - at.x % 32);
  }
}

[[kernel]] void simple(device int* out [[buffer(0)]], uint3 at [[threadgroup_position_in_grid]]) { out[at.x] = at.x; }

#define make(name, type) instantiate_kernel("scale_" #name, scale, type)
make(float, float)
template [[host_name("scale_int_by_3")]] [[kernel]] decltype(scale<int, 3>) scale<int, 3>;
"""


@pytest.fixture(scope="module")
def library() -> TextLibrary:
    return TextLibrary(TEXT)


def test_names(library: TextLibrary) -> None:
    assert set(library.names) == {"scale_float", "scale_int_by_3", "simple"}


@pytest.mark.parametrize(("name", "dtype", "by"), [("scale_float", np.float32, 2), ("scale_int_by_3", np.int32, 3)])
@pytest.mark.parametrize("shifted", [False, True])
def test_a_launch(library: TextLibrary, name: str, dtype: type, by: int, shifted: bool) -> None:
    kernel = library.function(name, {"factor": 5, "4": shifted})
    # A buffer without a number takes the first that is free.
    assert [a.location for a in kernel.buffers] == [2, 0, 5, 7]
    assert [a.writable for a in kernel.buffers] == [True, False, False, False]
    x, out = np.arange(70, dtype=dtype).reshape(2, 35), np.zeros((2, 35), dtype)
    buffers = {0: x, 2: out, 7: np.array([35, 2], np.uint32)} | ({5: dtype(1)} if shifted else {})
    kernel(buffers, grid=(40, 3, 1), threadgroup=(32, 1, 1))
    assert np.array_equal(out, x * (5 * by) + shifted)


def test_a_kernel_that_is_no_template(library: TextLibrary) -> None:
    out = np.full(4, -1, np.int32)
    library.function("simple")([out], threadgroups=4, threadgroup=1)
    assert out.tolist() == [0, 1, 2, 3]


def test_what_cannot_be_asked_for(library: TextLibrary) -> None:
    with pytest.raises(KeyError, match="scale_float"):
        library.function("scale_flaot")
    with pytest.raises(ValueError, match="no function constant 'factr': expected factor"):
        library.function("scale_float", {"factr": 1})
    with pytest.raises(ValueError, match=r"needs a value for its function constants.*factor"):
        library.function("scale_float", {"shifted": False})
    with pytest.raises(ValueError, match=r"buffer 0 \(int out\): the kernel writes it"):
        library.function("simple")({0: b"1234"}, threadgroups=1, threadgroup=1)
    with pytest.raises(CompilationError, match="undeclared"):
        TextLibrary("[[kernel]] void k(device int* out [[buffer(0)]]) { out[0] = missing; }").function("k")


def test_the_stock_headers() -> None:
    library = StockLibrary()
    assert "looped_softmax_bfloat16" in library
    assert "looped_softmax_double" not in library
    with pytest.raises(KeyError, match="no header that MLX ships"):
        library.function("looped_softmax_double")
    with pytest.raises(KeyError, match=r"no kernel 'softmax'.*softmax_single_row"):
        library.instantiate("softmax.h", "softmax", "float")
    kernel, x = library.instantiate("arange.h", "arange", "short"), np.zeros(5, np.int16)
    kernel([np.array([3], np.int16), np.array([-2], np.int16), x], grid=5, threadgroup=5)
    assert x.tolist() == [3, 1, -1, -3, -5]


def test_overloads_are_told_apart_by_their_arguments() -> None:
    text = "template <typename T, int N> [[kernel]] void k(device T* a) {}\n"
    text += "template <typename T, typename U, int N = 4> [[kernel]] void k(device U* a, device T* b) {}\n"
    found = functions(text)["k"]
    assert len(chosen(found, ("float", "4")).parameters) == 1
    assert len(chosen(found, ("float", "half")).parameters) == 2
    with pytest.raises(ValueError, match="no kernel 'k' takes"):
        chosen(found, ("3",))
    assert split("vec<int, 2> a, f(b, c), d[1]") == ("vec<int, 2> a", "f(b, c)", "d[1]")


def test_a_kernel_needs_no_values_for_what_others_use() -> None:
    library = TextLibrary(
        "constant bool wide [[function_constant(3)]];\n"
        "kernel void other(device float* o [[buffer(0)]]) { o[0] = wide ? 1 : 2; }\n"
        "[[kernel]] void mine(device float* o [[buffer(0)]]) { o[0] = 5; }\n"
    )
    assert library.function("mine").name == "mine"
    with pytest.raises(ValueError, match="function constants wide"):
        library.function("other")
    with pytest.raises(KeyError, match="expected one of other, mine"):
        library.function("zzzz")
