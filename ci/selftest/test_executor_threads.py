"""Threads on the host executor: the grid, barriers, and what moves across the lanes of a simdgroup."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest
from machine import EXECUTOR

from mlx_assay.impl.executors import launch, metal_kernel, use
from mlx_assay.impl.executors.choice import schedule

COUNTS = [1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 1000, 1024]
NUMPY = {mx.float32: np.float32, mx.uint32: np.uint32, mx.int32: np.int32, mx.float16: np.float16}

# They do so on purpose.
DIVERGENT = pytest.mark.filterwarnings("ignore::mlx_assay.impl.executors.DivergenceWarning")


def run(
    source: str,
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    inputs: list[np.ndarray[Any, Any]] | None = None,
    dtype: Any = mx.uint32,
    size: int | None = None,
    **options: Any,
) -> np.ndarray[Any, Any]:
    inputs = inputs or []
    shape = (grid[0] * grid[1] * grid[2] if size is None else size,)
    kernel = metal_kernel("threads", list("abc"[: len(inputs)]), ["out"], source, **options)
    with use(EXECUTOR):
        (out,) = kernel(
            inputs=[mx.array(x) for x in inputs],
            output_shapes=[shape],
            output_dtypes=[dtype],
            grid=grid,
            threadgroup=threadgroup,
            init_value=0,
        )
    return np.array(out.view(mx.uint16)).view(ml_dtypes.bfloat16) if dtype == mx.bfloat16 else np.array(out)


def lanes(source: str, x: np.ndarray[Any, Any], dtype: Any, header: str = "") -> np.ndarray[Any, Any]:
    """One threadgroup with a thread an element; `v` is the thread's own."""
    n = x.size
    body = f"uint i = thread_position_in_grid.x; auto v = a[i];\n{source}"
    # Eight elements at least, so that the input lies in device space whatever the number of threads.
    padded = np.concatenate([x, np.zeros(max(0, 8 - n), x.dtype)])
    return run(body, (n, 1, 1), (n, 1, 1), [padded], dtype, header=header)


@pytest.mark.parametrize(
    ("grid", "threadgroup", "covered"),
    [
        ((24, 1, 1), (256, 1, 1), 24),
        ((257, 1, 1), (256, 1, 1), 257),
        ((24, 64, 1), (256, 1, 1), 1536),
        ((24, 512, 1), (256, 1, 1), 12288),
        ((5, 7, 3), (2, 4, 2), 105),
        ((1, 1, 1), (1, 1, 1), 1),
        ((0, 4, 4), (1, 1, 1), 0),
    ],
)
def test_every_thread_of_the_grid_runs_once(
    grid: tuple[int, int, int], threadgroup: tuple[int, int, int], covered: int
) -> None:
    source = (
        "uint3 p = thread_position_in_grid; uint3 g = threads_per_grid;"
        "atomic_fetch_add_explicit(&out[(p.z * g.y + p.y) * g.x + p.x], 1u, memory_order_relaxed);"
    )
    got = run(source, grid, threadgroup, atomic_outputs=True, size=max(covered, 1))
    assert got.sum() == covered
    assert covered == 0 or np.all(got == 1)


@pytest.mark.parametrize(
    ("attribute", "want"),
    [
        # A grid of 10 x 3 in groups of 4 x 2: a row's last group has 2 x 2 threads, the last row's 4 x 1 and 2 x 1.
        ("threads_per_threadgroup.x", lambda x, y: 4 if x < 8 else 2),
        ("threads_per_threadgroup.y", lambda x, y: 2 if y < 2 else 1),
        ("threads_per_threadgroup.z", lambda x, y: 1),
        ("dispatch_threads_per_threadgroup.x", lambda x, y: 4),
        ("thread_position_in_threadgroup.x", lambda x, y: x % 4),
        ("thread_position_in_threadgroup.y", lambda x, y: y % 2),
        ("threadgroup_position_in_grid.x", lambda x, y: x // 4),
        ("threadgroup_position_in_grid.y", lambda x, y: y // 2),
        ("threadgroups_per_grid.x", lambda x, y: 3),
        ("threadgroups_per_grid.y", lambda x, y: 2),
        ("threads_per_grid.x", lambda x, y: 10),
        ("grid_size.y", lambda x, y: 3),
        ("grid_origin.x", lambda x, y: 0),
        ("thread_index_in_threadgroup", lambda x, y: y % 2 * (4 if x < 8 else 2) + x % 4),
        ("thread_index_in_quadgroup", lambda x, y: (y % 2 * (4 if x < 8 else 2) + x % 4) % 4),
        ("quadgroup_index_in_threadgroup", lambda x, y: (y % 2 * (4 if x < 8 else 2) + x % 4) // 4),
        ("quadgroups_per_threadgroup", lambda x, y: 2 if x < 8 and y < 2 else 1),
        ("dispatch_quadgroups_per_threadgroup", lambda x, y: 2),
        ("thread_execution_width", lambda x, y: 32),
        ("threads_per_simdgroup", lambda x, y: 32),
        ("simdgroups_per_threadgroup", lambda x, y: 1),
        ("dispatch_simdgroups_per_threadgroup", lambda x, y: 1),
    ],
)
def test_attributes(attribute: str, want: Any) -> None:
    source = f"uint3 p = thread_position_in_grid; out[p.y * 10 + p.x] = {attribute};"
    got = run(source, (10, 3, 1), (4, 2, 1))
    assert got.tolist() == [want(x, y) for y in range(3) for x in range(10)]


@pytest.mark.parametrize("n", COUNTS)
def test_simdgroups_of_a_threadgroup(n: int) -> None:
    source = (
        "uint i = thread_position_in_grid.x; out[i] = simdgroup_index_in_threadgroup * 10000 "
        "+ thread_index_in_simdgroup * 100 + simdgroups_per_threadgroup;"
    )
    assert run(source, (n, 1, 1), (n, 1, 1)).tolist() == [
        i // 32 * 10000 + i % 32 * 100 + -(-n // 32) for i in range(n)
    ]


@pytest.mark.parametrize("n", COUNTS)
def test_shuffles(n: int) -> None:
    # A lane that is not there gives the executor's own recognisable garbage.
    x = np.arange(n, dtype=np.uint32) * 3 + 1
    origins: dict[str, Callable[[int], int]] = {
        "simd_shuffle_down(v, 3)": lambda lane: lane + 3 if lane + 3 < 32 else lane,
        "simd_shuffle_up(v, 5)": lambda lane: lane - 5 if lane >= 5 else lane,
        "simd_shuffle_xor(v, 6)": lambda lane: lane ^ 6,
        "simd_shuffle(v, (i * 7) % 32)": lambda lane: lane * 7 % 32,
        "simd_shuffle(v, 40)": lambda lane: lane,
        "simd_broadcast(v, 2)": lambda lane: 2,
        "simd_broadcast_first(v)": lambda lane: 0,
        "simd_shuffle_rotate_down(v, 9)": lambda lane: (lane + 9) % 32,
        "simd_shuffle_rotate_up(v, 9)": lambda lane: (lane - 9) % 32,
        "quad_shuffle_xor(v, 2)": lambda lane: lane ^ 2,
        "quad_shuffle_down(v, 1)": lambda lane: lane + 1 if lane % 4 < 3 else lane,
        "quad_shuffle_up(v, 1)": lambda lane: lane - 1 if lane % 4 else lane,
        "quad_broadcast(v, 1)": lambda lane: lane // 4 * 4 + 1,
        "quad_broadcast_first(v)": lambda lane: lane // 4 * 4,
    }
    for call, source in origins.items():
        got = lanes(f"out[i] = {call};", x, mx.uint32)
        for i in range(n):
            origin = i // 32 * 32 + source(i % 32)
            want = x[origin] if origin < n else 0xDEADBEEF
            assert got[i] == want, (call, i)


def test_filling_shuffles() -> None:
    x = np.arange(32, dtype=np.uint32)
    # Up: the lowest lanes take the highest of the filling; down: the highest take the lowest, in windows of `modulo`.
    up = lanes("out[i] = simd_shuffle_and_fill_up(v, v + 100, 3);", x, mx.uint32)
    assert up.tolist() == [129, 130, 131, *range(29)]
    down = lanes("out[i] = simd_shuffle_and_fill_down(v, v + 100, 3);", x, mx.uint32)
    assert down.tolist() == [*range(3, 32), 100, 101, 102]
    window = lanes("out[i] = simd_shuffle_and_fill_down(v, v + 100, 2, 8);", x, mx.uint32)
    assert window.tolist() == [b + w for b in range(0, 32, 8) for w in [2, 3, 4, 5, 6, 7, 100, 101]]


@pytest.mark.parametrize(
    ("kind", "size"), [("float2", 8), ("uint4", 16), ("half4", 8), ("ulong", 8), ("bool", 1), ("char", 1)]
)
def test_shuffles_of_other_types(kind: str, size: int) -> None:
    element = {"float2": "w.y", "uint4": "w.w", "half4": "w.w", "ulong": "uint(w >> 33)", "bool": "w", "char": "w"}[
        kind
    ]
    value = {"ulong": "ulong(v) << 33", "bool": "(v & 1) != 0"}.get(kind, f"{kind}(v)")
    # Metal moves 32 bits; of 64, MLX's own utils.h has simd_shuffle.
    moved = f"simd_shuffle({value}, i ^ 1)" if kind == "ulong" else f"simd_shuffle_xor({value}, 1)"
    got = lanes(f"{kind} w = {moved}; out[i] = {element};", np.arange(32, dtype=np.uint32), mx.uint32)
    want = [i ^ 1 for i in range(32)]
    assert got.tolist() == [w & 1 if kind == "bool" else w for w in want]


def butterfly(values: list[np.ndarray[Any, Any]], operation: Any) -> Any:
    """Distances 1, 2, 4, 8, 16, each an operation of the values' own type; missing lanes take no part."""
    row: list[Any] = [*values, *([None] * (32 - len(values)))]
    for _ in range(5):
        pairs = zip(row[::2], row[1::2], strict=True)
        row = [a if b is None else operation(a, b) for a, b in pairs]
    return row[0]


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", [mx.float32, mx.float16])
def test_simd_sum_is_the_ascending_butterfly(n: int, dtype: Any) -> None:
    x = np.random.default_rng(n).standard_normal(n).astype(NUMPY[dtype])
    for name, operation in {"simd_sum": np.add, "simd_product": np.multiply}.items():
        got = lanes(f"out[i] = {name}(v);", x, dtype)
        for base in range(0, n, 32):
            want = butterfly(list(x[base : base + 32]), operation)
            assert np.all(got[base : base + 32].view(np.uint8) == np.repeat(want, min(32, n - base)).view(np.uint8))


def test_sums_of_bfloat_are_taken_in_f32() -> None:
    x = np.array([1.0, 2.0] + [0.0] * 30, np.float32)
    assert np.all(lanes("out[i] = simd_sum(bfloat(v));", x, mx.bfloat16).astype(np.float32) == 3)
    x[7] = np.nan
    assert np.isnan(lanes("out[i] = simd_sum(bfloat(v));", x, mx.bfloat16).astype(np.float32)).all()
    # 32 times 1 + 2**-7: in bfloat steps the sum would lose bits, in f32 it is 32.25 and a bfloat.
    x = np.full(32, 1 + 2.0**-7, np.float32)
    assert lanes("out[i] = simd_sum(bfloat(v));", x, mx.bfloat16).astype(np.float32)[0] == 32.25


@pytest.mark.parametrize("where", [(0,), (15,), (31,), (0, 15, 31), tuple(range(32))])
@pytest.mark.parametrize("name", ["simd_max", "simd_min"])
def test_nan_loses_in_simd_max(where: tuple[int, ...], name: str) -> None:
    x = np.arange(32, dtype=np.float32) - 5
    x[list(where)] = np.nan
    rest = x[~np.isnan(x)]
    for cast, dtype in (("float", mx.float32), ("half", mx.float16), ("bfloat", mx.bfloat16)):
        got = lanes(f"out[i] = {name}({cast}(v));", x, dtype).astype(np.float32)
        if rest.size == 0:
            assert np.isnan(got).all()
        else:
            assert np.all(got == (rest.max() if name == "simd_max" else rest.min()))


@pytest.mark.parametrize("n", COUNTS)
def test_integer_reductions_and_scans(n: int) -> None:
    x = np.random.default_rng(n).integers(0, 2**32, n, dtype=np.uint32)
    names: dict[str, Any] = {"simd_sum": np.add, "simd_max": np.maximum, "simd_min": np.minimum}
    names |= {"simd_and": np.bitwise_and, "simd_or": np.bitwise_or, "simd_xor": np.bitwise_xor}
    groups = [x[b : b + 32] for b in range(0, n, 32)]
    for name, operation in names.items():
        want = np.concatenate([np.full(g.size, operation.reduce(g, dtype=np.uint32)) for g in groups])
        assert np.array_equal(lanes(f"out[i] = {name}(v);", x, mx.uint32), want), name
    inclusive = np.concatenate([np.add.accumulate(g, dtype=np.uint32) for g in groups])
    assert np.array_equal(lanes("out[i] = simd_prefix_inclusive_sum(v);", x, mx.uint32), inclusive)
    assert np.array_equal(lanes("out[i] = simd_prefix_exclusive_sum(v);", x, mx.uint32), inclusive - x)


def test_votes() -> None:
    x = np.arange(40, dtype=np.uint32)
    body = (
        "bool c = v % 3 == 0; ulong m = ulong(simd_ballot(c));"
        "out[i] = uint(m) ^ (simd_any(v == 35) ? 1u << 31 : 0u) ^ "
        "(simd_all(v >= 32) ? 1u << 30 : 0u);"
    )
    first = sum(1 << i for i in range(32) if i % 3 == 0)
    second = sum(1 << (i - 32) for i in range(32, 40) if i % 3 == 0) ^ (1 << 31) ^ (1 << 30)
    assert lanes(body, x, mx.uint32).tolist() == [first] * 32 + [second] * 8
    assert lanes("out[i] = simd_is_first();", x, mx.uint32).tolist() == [int(i % 32 == 0) for i in range(40)]


@DIVERGENT
def test_diverged_lanes_act_with_those_at_the_same_call() -> None:
    x = np.arange(32, dtype=np.uint32)
    body = "if (i % 2 == 0) {\n  out[i] = simd_sum(v);\n} else {\n  out[i] = simd_sum(v);\n}"
    even, odd = sum(range(0, 32, 2)), sum(range(1, 32, 2))
    assert lanes(body, x, mx.uint32).tolist() == [even, odd] * 16
    # The source of an odd lane is an even one, which is not here.
    body = "out[i] = 7; if (i % 2) out[i] = simd_shuffle_xor(v, 1);"
    assert lanes(body, x, mx.uint32).tolist() == [7, 0xDEADBEEF] * 16


HALVES = [16] * 16 + [1600] * 16


@DIVERGENT
@pytest.mark.parametrize(
    ("header", "body", "want"),
    [
        (
            "uint total(uint v) { return simd_sum(v); }",
            "uint r; if (i < 16) r = total(1); else r = 100 * total(1); out[i] = r;",
            HALVES,
        ),
        ("", "out[i] = i < 16 ? simd_sum(1u) : 100 * simd_sum(1u);", HALVES),
        ("#define TOTAL simd_sum(1u)\n", "out[i] = i < 16 ? TOTAL : 100 * TOTAL;", HALVES),
        (
            "",
            "uint r = 1; for (uint k = 0; k < 4; k++) { if (k % 2 == i % 2) r = simd_sum(r); } out[i] = r;",
            [256] * 32,
        ),
        (
            "",
            "uint r = 0; for (uint k = 0; k < 8; k++) { if (k % 2 == i % 2) r += simd_sum(1u);\n"
            "if (k % 4 == 3) r += 1000 * simd_sum(1u); } out[i] = r;",
            [64 * 1000 + 64] * 32,
        ),
        (
            "",
            "uint r = 0; for (uint a = 0; a < 2; a++) for (uint b = 0; b < 2; b++) for (uint c = 0; c < 2; c++)\n"
            "for (uint d = 0; d < 2; d++) { if ((a + b + c + d) % 2 == i % 2) r += simd_sum(1u); } out[i] = r;",
            [128] * 32,
        ),
    ],
    ids=["function", "line", "macro", "turns", "order", "nest"],
)
def test_lanes_of_other_calls_and_turns_take_no_part(header: str, body: str, want: list[int]) -> None:
    x = np.arange(32, dtype=np.uint32)
    assert lanes(body, x, mx.uint32, header=header).tolist() == want


@DIVERGENT
def test_loops_of_unequal_length() -> None:
    # Lane i runs i + 1 rounds; in round r the lanes r..31 are left, and each round's sum counts them.
    body = "uint total = 0; for (uint r = 0; r <= i; r++) total += simd_sum(1u); out[i] = total;"
    want = [sum(32 - r for r in range(i + 1)) for i in range(32)]
    assert lanes(body, np.arange(32, dtype=np.uint32), mx.uint32).tolist() == want


@pytest.mark.parametrize("n", COUNTS)
def test_barriers_order_the_threads(n: int) -> None:
    body = """
      threadgroup uint box[1024];
      uint mine = v;
      for (uint round = 0; round < 5; round++) {
        box[i] = mine;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        mine = box[(i + 1) % threads_per_threadgroup.x] + 1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
      }
      out[i] = mine;"""
    x = np.arange(n, dtype=np.uint32) * 10
    assert lanes(body, x, mx.uint32).tolist() == [x[(i + 5) % n] + 5 for i in range(n)]


def test_schedules() -> None:
    exchange = "threadgroup uint s[64]; s[i] = v;%s out[i] = s[63 - i];"
    ordered, racing = exchange % "threadgroup_barrier(mem_flags::mem_threadgroup);", exchange % ""
    x = np.arange(64, dtype=np.uint32)
    results = {}
    for name in ("in-order", "reverse"):
        with schedule(name):
            assert lanes(ordered, x, mx.uint32).tolist() == x[::-1].tolist()
            assert lanes("out[i] = simd_sum(v);", x, mx.uint32).tolist() == [496] * 32 + [1520] * 32
            results[name] = lanes(racing, x, mx.uint32)
    # Without the barrier each thread sees only what ran before it.
    assert results["in-order"][63] == 0
    assert results["in-order"][0] == 0xFFDEFFDE
    assert results["reverse"][0] == 63
    assert results["reverse"][63] == 0xFFDEFFDE
    with pytest.raises(ValueError, match="'sideways': expected one of in-order, reverse"), schedule("sideways"):
        pass


@DIVERGENT
def test_threads_that_returned_count_as_arrived() -> None:
    body = (
        "threadgroup uint s[64]; if (i >= 25) return; s[i] = v;"
        "threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = s[24 - i];"
    )
    assert lanes(body, np.arange(64, dtype=np.uint32), mx.uint32)[:25].tolist() == list(range(24, -1, -1))


@pytest.mark.parametrize("threads", [14, 40, 100])
def test_a_barrier_that_live_threads_miss_is_an_error(threads: int) -> None:
    body = (
        f"if (i < {threads // 2}) {{\n  threadgroup_barrier(mem_flags::mem_threadgroup);\n}} else {{\n"
        "  threadgroup_barrier(mem_flags::mem_threadgroup);\n}\nout[i] = 1;"
    )
    with pytest.raises(RuntimeError, match=r"'threads'.*source lines 3 and 5"):
        lanes(body, np.arange(threads, dtype=np.uint32), mx.uint32)
    # The machinery is whole after a fault.
    assert lanes("out[i] = simd_sum(1u);", np.arange(32, dtype=np.uint32), mx.uint32).tolist() == [32] * 32


def test_grids_too_large_are_refused() -> None:
    for grid in ((2**32, 1, 1), (1, 2**31, 1), (1, 1, 2**40)):
        with pytest.raises(TypeError, match="`grid`"):
            launch.check_grid(grid, (1, 1, 1))
    assert launch.check_grid((2**31 - 1, 2**31 - 1, 1), (256, 1, 1))[1] == (256, 1, 1)


@pytest.mark.parametrize(
    ("grid", "threadgroup", "error"),
    [
        ((8, 1), (8, 1, 1), TypeError),
        ((8, 1, 1), (8, 1.5, 1), TypeError),
        ((8, 1, 1), (1025, 1, 1), ValueError),
        ((8, 1, 1), (32, 32, 2), ValueError),
        ((8, 1, 1), (0, 1, 1), ValueError),
        ((-1, 1, 1), (1, 1, 1), ValueError),
    ],
)
def test_wrong_grids(grid: Any, threadgroup: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        run("out[0] = 1;", grid, threadgroup, size=8)


def test_atomics_over_the_grid() -> None:
    body = "uint i = thread_position_in_grid.x; atomic_fetch_add_explicit(&out[i % 3], 1.5f, memory_order_relaxed);"
    got = run(body, (1000, 1, 1), (64, 1, 1), dtype=mx.float32, size=3, atomic_outputs=True)
    assert got.tolist() == [334 * 1.5, 333 * 1.5, 333 * 1.5]
