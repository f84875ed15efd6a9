"""What authors of such kernels were caught by, told in public: the kind of kernel, and the value that is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import headers, metal_kernel, use
from mlx_assay.impl.executors.fidelity import switched

INDEX = "uint i = thread_position_in_grid.x;\n"
BARRIER = "threadgroup_barrier(mem_flags::mem_threadgroup);"
RELAXED = "memory_order_relaxed"
NAN, INF = float("nan"), float("inf")
DTYPES = {"float": mx.float32, "half": mx.float16, "bfloat": mx.bfloat16}
WORDS = {"float": mx.uint32, "half": mx.uint16, "bfloat": mx.uint16}
INFINITIES = {"float": 0x7F800000, "half": 0x7C00, "bfloat": 0x7F80}


def run(
    body: str,
    given: Sequence[Any] = (),
    threads: int = 32,
    dtype: Any = mx.float32,
    size: int = 0,
    threadgroup: int = 0,
    init_value: float | None = None,
    header: str = "",
    **options: Any,
) -> mx.array:
    kernel = metal_kernel("reported", list("abc"[: len(given)]), ["out"], INDEX + body, header, **options)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[mx.array(one) for one in given],
            output_shapes=[(size or threads,)],
            output_dtypes=[dtype],
            grid=(threads, 1, 1),
            threadgroup=(threadgroup or threads, 1, 1),
            init_value=init_value,
        )
    return out


def same(got: mx.array, want: Sequence[float]) -> None:
    """Equal values, NaN for NaN."""
    assert np.array_equal(np.array(got.astype(mx.float32)), np.array(want, np.float32), equal_nan=True)


def test_an_exchange_of_floats_is_made_by_bits_and_told_by_value() -> None:
    """Seen on Apple's GPUs by others, ml-explore/mlx#3492 and pytorch/pytorch#196203: a loop over a NaN hangs there."""
    body = f"""
      threadgroup atomic_float s[5];
      float seen = a[i];
      atomic_store_explicit(&s[i], b[i], {RELAXED});
      out[2 * i] = atomic_compare_exchange_weak_explicit(&s[i], &seen, 7.0f, {RELAXED}, {RELAXED});
      out[2 * i + 1] = atomic_load_explicit(&s[i], {RELAXED});
      out[10 + i] = seen;"""
    expected, held = np.float32([NAN, 0.0, 1, 1, NAN, 0, 0, 0]), np.float32([NAN, -0.0, 1, 2, 2, 0, 0, 0])
    got = run(body, [expected, held], 5, size=15)
    same(got, [0, 7, 1, -0.0, 1, 7, 0, 2, 0, 2, NAN, 0, 1, 2, 2])
    assert np.signbit(np.array(got)[[3, 11]]).all(), "told as exchanged, and not exchanged"


def test_a_loop_of_exchanges_over_nan_ends_where_bits_are_compared() -> None:
    body = f"""
      threadgroup ATOMIC cell;
      if (i == 0) atomic_store_explicit(&cell, BITS(NAN), {RELAXED});
      {BARRIER}
      auto seen = atomic_load_explicit(&cell, {RELAXED});
      uint tries = 0;
      while (tries++ < 100 && !atomic_compare_exchange_weak_explicit(
                                  &cell, &seen, BITS(VALUE(seen) * 2.0f), {RELAXED}, {RELAXED})) {{
      }}
      out[i] = tries;"""
    values = "#define ATOMIC atomic_float\n#define BITS(x) (x)\n#define VALUE(x) (x)\n"
    bits = "#define ATOMIC atomic_uint\n#define BITS(x) as_type<uint>(x)\n#define VALUE(x) as_type<float>(x)\n"
    assert np.all(np.array(run(body, dtype=mx.uint32, header=values)) == 101)
    assert np.all(np.array(run(body, dtype=mx.uint32, header=bits)) <= 32)


def test_a_sum_of_atomics_over_nan_ends() -> None:
    # Cell 0 holds NaN before, cell 1 gets one; cell 2 is 1 + 32 * 2 - 32.
    body = f"""
      threadgroup atomic_float s[3];
      if (i < 3) atomic_store_explicit(&s[i], i == 0 ? NAN : 1.0f, {RELAXED});
      {BARRIER}
      for (uint c = 0; c < 3; c++) {{
        atomic_fetch_add_explicit(&s[c], c == 1 && i == 5 ? NAN : 2.0f, {RELAXED});
        atomic_fetch_sub_explicit(&s[c], 1.0f, {RELAXED});
      }}
      {BARRIER}
      if (i < 3) out[i] = atomic_load_explicit(&s[i], {RELAXED});"""
    same(run(body, size=3), [NAN, NAN, 33])


@pytest.mark.parametrize("kind", DTYPES)
def test_atomics_of_mlx_over_nan_end(kind: str) -> None:
    """Cells of 1 that get 2, 3 and 1, that get a NaN besides, and one that held NaN; halves share their words."""
    calls = "".join(
        f"mlx_atomic_fetch_{name}_explicit(cells, given, {3 * at} + i % 3);\n"
        for at, name in enumerate(("add", "mul", "max", "min"))
    )
    body = (
        f"device mlx_atomic<{kind}>* cells = (device mlx_atomic<{kind}>*)out;\n"
        f"if (i % 3 == 2 && i < 12) mlx_atomic_store_explicit(cells, {kind}(NAN), size_t(i));\n{BARRIER}\n"
        f"const {kind} given = {kind}(a[i]);\n{calls}"
    )
    given = np.float32([[2, 2, 2], [3, NAN, 3], [1, 3, 1], [1, 1, 1]]).reshape(-1)
    got = run(body, [given], 12, DTYPES[kind], init_value=1, header=headers.including("atomic.h"))
    # A larger or smaller one is looked for by comparison, which a NaN fails.
    same(got, [8, NAN, NAN, 6, NAN, NAN, 3, 3, NAN, 1, 1, NAN])


@pytest.mark.parametrize("kind", DTYPES)
def test_the_place_of_the_largest_passes_over_nan(kind: str) -> None:
    """simd_max over the lanes, then the least lane that holds it: what a row padded with -inf gives on a GPU."""
    rows = [[NAN, 6, 8], [NAN, INF, 1], [INF, NAN, 1], [1, NAN, 1], [-INF, NAN, -INF], [NAN, -INF, NAN]]
    given = np.full((len(rows), 32), -INF, np.float32)
    given[:, :3] = rows
    body = (
        f"{kind} v = {kind}(a[i]); {kind} most = simd_max(v); uint at = simd_min(v == most ? i % 32 : 32u);\n"
        f"{kind} q = quad_max(v); uint there = quad_min(v == q ? i % 4 : 4u);\n"
        "if (i % 32 == 0) { out[i / 16] = at; out[i / 16 + 1] = there; }"
    )
    got = np.array(run(body, [given], given.size, mx.uint32, 2 * len(rows))).reshape(-1, 2)
    assert got.tolist() == [[at, at] for at in (2, 1, 0, 0, 0, 1)]


def test_sums_of_int_wrap() -> None:
    body = f"""
      int alone = 0;
      for (uint k = 0; k < 128; k++) alone += a[k];
      threadgroup int s[32];
      s[i] = a[i] + a[i + 32];
      {BARRIER}
      int shared = 0;
      for (uint k = 0; k < 32; k++) shared += s[k];
      const int some = simd_sum(i < 3 ? a[i] : 0), product = simd_product(i < 2 ? 65537 : 1);
      const int told[] = {{alone, shared, s[0], simd_sum(a[i]), some, product}};
      if (i < 6) out[32 + i] = told[i];
      out[i] = simd_prefix_inclusive_sum(a[i]);"""
    prefix = [(2**30 * (k + 1) + 2**31) % 2**32 - 2**31 for k in range(32)]
    got = run(body, [np.full(128, 2**30, np.int32)], 32, mx.int32, 38).tolist()
    assert got == [*prefix, 0, 0, -(2**31), 0, -(2**30), 131073]


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("denormals", ["flushed", "kept"])
def test_the_place_of_the_largest_among_denormals(kind: str, denormals: str) -> None:
    """[0, least, -least, 0]: a device that compares denormals as zero finds no difference; of halves they are kept."""
    given = mx.array(np.array([0, 1, 1, 0] * 2, np.uint32).astype(np.uint32 if kind == "float" else np.uint16))
    given = mx.where(mx.arange(8) % 4 == 2, given | (1 << (31 if kind == "float" else 15)), given).view(DTYPES[kind])
    body = (
        "uint most = 0, least = 0; for (uint k = 1; k < 4; k++) {\n"
        "if (a[k] > a[most]) most = k; if (a[k] < a[least]) least = k; }\n"
        "out[i] = i == 0 ? most : i == 1 ? least : uint(a[i - 2] == a[0]);"
    )
    with switched(f32_denormals=denormals):
        got = run(body, [given], 6, mx.uint32).tolist()
    flushed = denormals == "flushed" and kind != "half"
    assert got == ([0, 0, 1, 1, 1, 1] if flushed else [1, 2, 1, 0, 0, 1])


@pytest.mark.parametrize("mode", ["safe", "relaxed", "fast"])
def test_no_mode_takes_numbers_for_finite(mode: str) -> None:
    given = np.float32([NAN, INF, -INF, 1.5, -NAN, 0, 3e38, 2])
    body = (
        "const float x = a[i]; const half h = half(x); const bfloat16_t b = bfloat16_t(x);\n"
        "out[i] = isnan(x) | (x != x) << 1 | isinf(x) << 2 | !isfinite(x) << 3 | !(x == x) << 4 | isnan(h) << 5"
        " | (h != h) << 6 | isnan(b) << 7 | (b != b) << 8 | (!(x < 1.0f) && !(x >= 1.0f)) << 9;"
    )
    got = np.array(run(body, [given], 8, mx.uint32, compile_options={"math_mode": mode}))
    nan, infinite = np.isnan(given), np.isinf(given)
    assert got.tolist() == (nan * 0b1111111011 + (infinite << 2) + infinite * 8).tolist()
    for kind, infinity in INFINITIES.items():
        body = f"out[i] = i % 2 ? {kind}(a[i]) : {kind}(-INFINITY);"
        out = run(body, [np.full(8, INF, np.float32)], 8, DTYPES[kind], compile_options={"math_mode": mode})
        negative = infinity | (1 << (31 if kind == "float" else 15))
        assert out.view(WORDS[kind]).tolist() == [negative, infinity] * 4


@pytest.mark.filterwarnings("ignore::mlx_assay.impl.executors.DivergenceWarning")
@pytest.mark.parametrize(("threads", "left"), [(32, 25), (33, 25), (256, 128)])
def test_a_return_before_a_barrier_leaves_the_barrier(threads: int, left: int) -> None:
    """Whatever the count of threads: those of one SIMD group have to meet too."""
    body = (
        f"threadgroup uint s[{threads}]; if (i >= {left}) return; s[i] = i; {BARRIER}\n"
        f"const uint seen = s[{left - 1} - i]; {BARRIER}\ns[i] = seen; {BARRIER}\nout[i] = s[(i + 1) % {left}];"
    )
    want = [left - 1 - (k + 1) % left for k in range(left)]
    assert run(body, [], threads, mx.uint32).tolist()[:left] == want


@pytest.mark.parametrize(("threads", "last"), [(24, 24), (257, 1), (256, 256)])
def test_a_threadgroup_is_clamped_to_the_grid(threads: int, last: int) -> None:
    body = "out[i] = threads_per_threadgroup.x * 65536 + dispatch_threads_per_threadgroup.x;"
    got = run(body, [], threads, mx.uint32, threadgroup=256).tolist()
    assert len(got) == threads
    assert divmod(got[-1], 65536) == (last, min(threads, 256))
    assert divmod(got[0], 65536) == (min(threads, 256), min(threads, 256))


def test_vectors_become_bfloats_as_numbers_do() -> None:
    """0.26914 by rounding, not by cutting off; a NaN of the lowest payload is none but a NaN; integers to even."""
    words = np.uint32([np.float32(0.2691408770292272).view(np.uint32), 0x7F800001, 0x7F7FFFFF, 0x80000000])
    body = (
        "float4 x = as_type<float4>(uint4(a[0], a[1], a[2], a[3])); bfloat4 y = bfloat4(x);\n"
        "bfloat4 z = bfloat4(int4(257, 259, int(i), -257)); ushort4 w = ushort4(as_type<ushort>(y.x),\n"
        "as_type<ushort>(y.y), as_type<ushort>(y.z), as_type<ushort>(y.w));\n"
        "out[i] = i < 4 ? float(w[i]) : float(i == 4 ? z.x : i == 5 ? z.y : i == 6 ? z.z : z.w);"
    )
    got = run(body, [np.concatenate([words, words])], 8).tolist()
    assert got[0] == 0x3E8A
    assert got[1] % 0x8000 > 0x7F80
    assert got[2:] == [0x7F80, 0x8000, 256, 260, 6, -256]


def test_a_shared_sum_of_bfloats_is_one_of_numbers() -> None:
    """Not of their encodings: 1 + 2 is 3, and a NaN stays."""
    body = (
        f"threadgroup bfloat16_t s[32]; s[i] = bfloat16_t(a[i]); {BARRIER}\n"
        "bfloat16_t total = bfloat16_t(0), some = bfloat16_t(0);\n"
        "for (uint k = 0; k < 32; k++) { total += s[k]; if (k < 2) some += s[k]; }\n"
        "out[i] = i % 2 ? float(total) : float(some);"
    )
    given = np.zeros(32, np.float32)
    given[:2], given[9] = (1, 2), NAN
    same(run(body, [given], 32)[:2], [3, NAN])
