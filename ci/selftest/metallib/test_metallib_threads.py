"""Where threads of Apple's compiled kernels meet: barriers, threadgroup memory, simdgroup operations, positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlx_assay.impl.executors.apple.kernel import LaunchError

BARRIER = "declare void @air.wg.barrier(i32, i32)"
SIZES = (1, 7, 32, 33, 64)


def lanes(values: Any, size: int) -> list[Any]:
    """The values of each simdgroup of a threadgroup of `size`; the last may be short."""
    return [values[i : min(i + 32, size)] for i in range(0, size, 32)]


@pytest.mark.parametrize("size", SIZES)
def test_simd_sum_adds_by_the_ascending_butterfly(forge: Any, size: int) -> None:
    x = (np.random.default_rng(size).standard_normal(size) * 1000).astype(np.float32)
    kernel = forge.kernel(forge.call("air.simd_sum.f32", "f", "f"))
    expected = []
    for group in lanes(x, size):
        level = list(group)
        while len(level) > 1:
            # A lane without a partner keeps what it has.
            level = [level[i] + level[i + 1] if i + 1 < len(level) else level[i] for i in range(0, len(level), 2)]
        expected += [level[0]] * len(group)
    got = forge.run(kernel, x, output="f", threadgroup=size)
    assert got.tolist() == [float(v) for v in expected]
    assert kernel.ordered == ["air.simd_sum.f32"]
    assert kernel.opaque == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("air.simd_sum.s.i32", lambda g: [sum(g)] * len(g)),
        ("air.simd_max.s.i32", lambda g: [max(g)] * len(g)),
        ("air.simd_min.s.i32", lambda g: [min(g)] * len(g)),
        ("air.simd_prefix_inclusive_sum.s.i32", lambda g: np.cumsum(g).tolist()),
        ("air.simd_prefix_exclusive_sum.s.i32", lambda g: [0, *np.cumsum(g).tolist()[:-1]]),
    ],
)
def test_integer_reductions_and_scans(forge: Any, size: int, name: str, of: Any) -> None:
    x = np.random.default_rng(size).integers(-1000, 1000, size).astype(np.int32)
    got = forge.run(forge.kernel(forge.call(name, "i", "i")), x, output="i", threadgroup=size)
    assert got.tolist() == [v for group in lanes(x.tolist(), size) for v in of(group)]


def test_shuffles_past_the_edge_keep_the_callers_own_value(forge: Any) -> None:
    x, by = np.arange(100, 132, dtype=np.int32), np.full(32, 5, np.int16)
    down = forge.run(forge.kernel(forge.call("air.simd_shuffle_down.s.i32", "is", "i")), x, by, output="i")
    assert down.tolist() == [*range(105, 132), *range(127, 132)]
    up = forge.run(forge.kernel(forge.call("air.simd_shuffle_up.s.i32", "is", "i")), x, by, output="i")
    assert up.tolist() == [*range(100, 105), *range(100, 127)]
    xor = forge.run(forge.kernel(forge.call("air.simd_shuffle_xor.s.i32", "is", "i")), x, by, output="i")
    assert xor.tolist() == [100 + (i ^ 5) for i in range(32)]
    index = np.arange(31, -1, -1).astype(np.int16)
    straight = forge.run(forge.kernel(forge.call("air.simd_shuffle.s.i32", "is", "i")), x, index, output="i")
    assert straight.tolist() == list(range(131, 99, -1))


def test_a_filled_shuffle_takes_the_end_of_the_filling(forge: Any) -> None:
    x, fill = np.arange(32, dtype=np.int32), np.arange(100, 132, dtype=np.int32)
    by, modulo = np.full(32, 3, np.int16), np.full(32, 32, np.int16)
    kernel = forge.kernel(forge.call("air.simd_shuffle_and_fill_up.s.i32", "iiss", "i"))
    assert forge.run(kernel, x, fill, by, modulo, output="i").tolist() == [129, 130, 131, *range(29)]


def test_quad_sum_adds_four_lanes(forge: Any) -> None:
    x = np.arange(64, dtype=np.float32)
    got = forge.run(forge.kernel(forge.call("air.quad_sum.f32", "f", "f")), x, output="f", threadgroup=64)
    assert got.tolist() == [float(16 * (i // 4) + 6) for i in range(64)]


def reversal() -> str:
    """out[i] = in[n - 1 - i] by way of threadgroup memory; slot 40 is read by a constant expression into out[3]."""
    symbol = "@_ZZ1kE5local"
    return f"""  %p = getelementptr float, ptr addrspace(1) %0, i32 %id
  %x = load float, ptr addrspace(1) %p
  %s = getelementptr [48 x float], ptr addrspace(3) {symbol}, i32 0, i32 %id
  store float %x, ptr addrspace(3) %s
  call void @air.wg.barrier(i32 2, i32 1)
  %m = sub i32 31, %id
  %t = getelementptr [48 x float], ptr addrspace(3) {symbol}, i32 0, i32 %m
  %y = load float, ptr addrspace(3) %t
  %u = load float, ptr addrspace(3) getelementptr ([48 x float], ptr addrspace(3) {symbol}, i32 0, i32 40)
  %three = icmp eq i32 %id, 3
  %r = select i1 %three, float %u, float %y
  %q = getelementptr float, ptr addrspace(1) %1, i32 %id
  store float %r, ptr addrspace(1) %q"""


@pytest.mark.parametrize("schedule", ["in-order", "reverse"])
def test_threadgroup_memory_is_shared_and_poisoned(forge: Any, schedule: str) -> None:
    variable = "@_ZZ1kE5local = internal unnamed_addr addrspace(3) global [48 x float] undef, align 4\n"
    kernel = forge.kernel(forge.module(reversal(), "f", "f", variable + BARRIER))
    x = np.arange(32, dtype=np.float32)
    got = forge.run(kernel, x, output="f", poison=0x41000000, schedule=schedule)
    expected = x[::-1].copy()
    expected[3] = 8.0  # the float behind the poison
    assert got.tolist() == expected.tolist()
    assert kernel.threadgroup_bytes == 192


def test_a_kernel_sees_its_place_in_the_grid(forge: Any) -> None:
    wanted = (
        ("thread_position_in_threadgroup", 0), ("thread_position_in_threadgroup", 1),
        ("threadgroup_position_in_grid", 1),
        ("threads_per_threadgroup", 1), ("threads_per_grid", 1), ("threadgroups_per_grid", 1),
    )  # fmt: skip
    lines = ["  %w = extractelement <3 x i32> %threads_per_grid, i32 0"]
    for name, axis in (("x", 0), ("y", 1)):
        lines += [
            f"  %g{name} = extractelement <3 x i32> %threadgroup_position_in_grid, i32 {axis}",
            f"  %d{name} = extractelement <3 x i32> %dispatch_threads_per_threadgroup, i32 {axis}",
            f"  %l{name} = extractelement <3 x i32> %thread_position_in_threadgroup, i32 {axis}",
            f"  %m{name} = mul i32 %g{name}, %d{name}",
            f"  %t{name} = add i32 %m{name}, %l{name}",
        ]
    lines += ["  %row = mul i32 %ty, %w", "  %at = add i32 %row, %tx", "  %slot = mul i32 %at, 6"]
    for i, (name, axis) in enumerate(wanted):
        lines += [
            f"  %v{i} = extractelement <3 x i32> %{name}, i32 {axis}",
            f"  %i{i} = add i32 %slot, {i}",
            f"  %o{i} = getelementptr i32, ptr addrspace(1) %1, i32 %i{i}",
            f"  store i32 %v{i}, ptr addrspace(1) %o{i}",
        ]
    attributes = "thread_position_in_threadgroup threadgroup_position_in_grid threads_per_threadgroup threads_per_grid "
    text = forge.module(
        "\n".join(lines), "i", "i", attributes=attributes + "threadgroups_per_grid dispatch_threads_per_threadgroup"
    )
    out = np.zeros((5, 7, 6), np.int32)
    forge.kernel(text)([np.zeros(1, np.int32), out], grid=(7, 5, 1), threadgroup=(4, 2, 1))
    expected = [[[x % 4, y % 2, y // 2, 2 if y < 4 else 1, 5, 3] for x in range(7)] for y in range(5)]
    assert out.tolist() == expected


def test_matrices_multiply_across_a_simdgroup(forge: Any) -> None:
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-9, 9, (8, 8)).astype(np.float32) for _ in range(2))
    m, p = "<64 x float>", "ptr addrspace(1)"
    end = "i64 8, <2 x i64> zeroinitializer, i1"
    load, store = "air.simdgroup_matrix_8x8_load.v64f32.p1f32", "air.simdgroup_matrix_8x8_store.v64f32.p1f32"
    multiply = "air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32"
    fill = "air.simdgroup_matrix_8x8_init_filled.v64f32.f32"
    declared = f"""declare {m} @{load}({p}, i64, <2 x i64>, i1)
declare void @{store}({m}, {p}, i64, <2 x i64>, i1)
declare {m} @{multiply}({m}, {m}, {m})
declare {m} @{fill}(float)"""
    body = f"""  %a = call {m} @{load}({p} %0, {end} false)
  %b = call {m} @{load}({p} %1, {end} true)
  %c = call {m} @{fill}(float 0.5)
  %d = call {m} @{multiply}({m} %a, {m} %b, {m} %c)
  call void @{store}({m} %d, {p} %2, {end} false)"""
    out = np.zeros((8, 8), np.float32)
    forge.kernel(forge.module(body, "ff", "f", declared))([a, b, out], grid=32, threadgroup=32)
    assert np.array_equal(out, a @ b.T + 0.5)


def test_atomic_adds_of_every_thread_arrive(forge: Any) -> None:
    name, p = "air.atomic.global.add.s.i32", "ptr addrspace(1)"
    body = f"  %old = call i32 @{name}({p} %1, i32 %id, i32 0, i32 2, i1 true)"
    text = forge.module(body, "i", "i", f"declare i32 @{name}({p}, i32, i32, i32, i1)")
    out = np.zeros(1, np.int32)
    forge.kernel(text)([np.zeros(1, np.int32), out], grid=1000, threadgroup=64)
    assert out.tolist() == [999 * 500]


@pytest.mark.parametrize(
    ("expected", "held", "kept"), [(1.0, 1.0, 7.0), (1.0, 2.0, 2.0), (np.nan, np.nan, 7.0), (0.0, -0.0, -0.0)]
)
def test_floats_are_exchanged_by_their_bits(expected: float, held: float, kept: float, forge: Any) -> None:
    """Success is the kernel's own comparison of values, with the flags that Metal gives it."""
    name, p = "air.atomic.global.cmpxchg.weak.f32", "ptr addrspace(1)"
    body = f"""  %seen = alloca float
  %e = load float, {p} %0
  store float %e, ptr %seen
  %old = call fast float @{name}({p} %1, ptr %seen, float 7.0, i32 0, i32 0, i32 2, i1 true)
  %done = fcmp fast ueq float %e, %old
  %told = uitofp i1 %done to float
  %o = getelementptr float, {p} %1, i32 1
  store float %told, {p} %o
  %s = load float, ptr %seen
  %w = getelementptr float, {p} %1, i32 2
  store float %s, {p} %w"""
    text = forge.module(body, "f", "f", f"declare float @{name}({p}, ptr, float, i32, i32, i32, i1)")
    out = np.float32([held, 9, 9])
    forge.kernel(text)([np.float32([expected]), out], grid=1, threadgroup=1)
    want = np.float32([kept, expected == held, held])
    assert out.tobytes() == want.tobytes()


def test_threads_at_different_barriers_are_an_error_that_names_them(forge: Any) -> None:
    body = """  %odd = trunc i32 %id to i1
  br i1 %odd, label %a, label %b
a:
  call void @air.wg.barrier(i32 2, i32 1)
  br label %c
b:
  call void @air.wg.barrier(i32 1, i32 1)
  br label %c
c:"""
    kernel = forge.kernel(forge.module(body, "f", "f", BARRIER))
    x = np.zeros(4, np.float32)
    with pytest.raises(LaunchError, match=r"air\.wg\.barrier \(number \d\) and air\.wg\.barrier \(number \d\)"):
        kernel([x, x.copy()], grid=4, threadgroup=4)
