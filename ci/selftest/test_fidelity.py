"""The fidelity switches: each changes the bits of a kernel made to show it, and of no other."""

import threading
from collections.abc import Callable, Iterator
from itertools import accumulate, product
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import describe, fidelity, metal_kernel, use

ORDERS = fidelity.SWITCHES["simd_sum"]
WORDS = {2: mx.uint16, 4: mx.uint32}
MIXED = (np.random.default_rng(7).standard_normal(64) * 10.0 ** np.random.default_rng(8).uniform(-3, 3, 64)).astype(
    np.float32
)


def run(source: str, x: np.ndarray[Any, Any], dtype: Any = mx.float32) -> np.ndarray[Any, Any]:
    """The output's bits; `v` is the thread's element, all threads are one threadgroup."""
    kernel = metal_kernel("switched", ["a"], ["out"], f"uint i = thread_position_in_grid.x; auto v = a[i]; {source}")
    with use("host"):
        (out,) = kernel(
            inputs=[mx.array(x)],
            output_shapes=[(x.size,)],
            output_dtypes=[dtype],
            grid=(x.size, 1, 1),
            threadgroup=(x.size, 1, 1),
        )
    return np.array(out.view(WORDS[dtype.size]))


def floats(source: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return run(source, x).view(np.float32)


# (1 + 2**-12) squared is 1 + 2**-11 + 2**-24: rounded to f32 it loses the last term, fused it keeps it.
ONE_PRODUCT = "out[i] = v * v - (1.0f + 0x1p-11f);"
SQUARES = np.full(8, 1 + 2.0**-12, np.float32)


@pytest.mark.parametrize(
    "source",
    [
        ONE_PRODUCT,
        "{\n#pragma METAL fp contract(on)\nout[i] = v * v - (1.0f + 0x1p-11f); }",
        "{\n#pragma METAL fp contract(fast)\nfloat p = v * v; out[i] = p - (1.0f + 0x1p-11f); }",
        "float2 w = float2(v, 1.0f); float2 r = w * w - float2(1.0f + 0x1p-11f); out[i] = r.x;",
        "out[i] = dot(float2(v, -v), float2(v, v)) * -1.0f;",
    ],
)
def test_contraction_rounds_a_product_before_the_sum(source: str) -> None:
    assert floats(source, SQUARES).tolist() == [2.0**-24] * 8
    with fidelity.switched(contraction="off"):
        assert floats(source, SQUARES).tolist() == [0.0] * 8


def test_contraction_of_halves() -> None:
    x = np.full(4, 1 + 2.0**-6, np.float16)
    source = "half one = 1.0h + 0x1p-5h; out[i] = v * v - one;"
    # 1 + 2**-5 + 2**-12: a half keeps ten bits.
    assert run(source, x, mx.float16).view(np.float16).tolist() == [2.0**-12] * 4
    with fidelity.switched(contraction="off"):
        assert run(source, x, mx.float16).view(np.float16).tolist() == [0.0] * 4


def test_fma_is_fused_without_contraction() -> None:
    with fidelity.switched(contraction="off"):
        assert floats("out[i] = fma(v, v, -(1.0f + 0x1p-11f));", SQUARES).tolist() == [2.0**-24] * 8


def test_denormals_of_f32_are_flushed_or_kept() -> None:
    x = np.array([2.0**-126, -(2.0**-126), 2.0**-130, 1.0], np.float32)
    halved = "out[i] = v * 0.5f;"
    assert run(halved, x).tolist() == [0, 0x80000000, 0, 0x3F000000]
    folded = "float tiny = 0x1p-126f; out[i] = tiny * 0.5f;"
    assert run(folded, x).tolist() == [0] * 4
    with fidelity.switched(f32_denormals="kept"):
        assert run(halved, x).tolist() == [0x400000, 0x80400000, 0x40000, 0x3F000000]
        assert run(folded, x).tolist() == [0x400000] * 4


def test_denormals_of_bfloat_follow_f32_and_those_of_half_are_kept() -> None:
    x = np.full(4, 2.0**-126, np.float32)
    source = "bfloat b = bfloat(v); out[i] = b * bfloat(0.5f);"
    assert run(source, x, mx.bfloat16).tolist() == [0] * 4
    with fidelity.switched(f32_denormals="kept"):
        assert run(source, x, mx.bfloat16).tolist() == [0x40] * 4
    small = np.full(4, 2.0**-14, np.float16)
    for value in fidelity.SWITCHES["f32_denormals"]:
        with fidelity.switched(f32_denormals=value):
            assert run("out[i] = v * 0.5h;", small, mx.float16).tolist() == [0x200] * 4


Values = list[Any]
Operation = Callable[[Any, Any], Any]


def tree(values: Values, operation: Operation, ascending: bool) -> Any:
    """Pairs of neighbours, or of the halves; a lane without a partner keeps its value."""
    row: Values = [*values, *[None] * ((4 if len(values) <= 4 else 32) - len(values))]
    while len(row) > 1:
        half = len(row) // 2
        pairs = zip(row[::2], row[1::2], strict=True) if ascending else zip(row[:half], row[half:], strict=True)
        row = [a if b is None else operation(a, b) for a, b in pairs]
    return row[0]


def reduction(values: Values, operation: Operation, order: str) -> Any:
    if order.endswith("butterfly"):
        return tree(values, operation, order.startswith("ascending"))
    return list(accumulate(values if order == "sequential" else values[::-1], operation))[-1]


def ladder(values: Values, operation: Operation, ascending: bool) -> Values:
    """Each lane joins the one below it at distance 1, 2, 4 ... (or ... 4, 2, 1), all at once."""
    distances = [1, 2, 4, 8, 16] if len(values) > 4 else [1, 2]
    for d in distances if ascending else distances[::-1]:
        values = [operation(v, values[i - d]) if i >= d else v for i, v in enumerate(values)]
    return values


def prefixes(values: Values, operation: Operation, order: str) -> Values:
    if order.endswith("butterfly"):
        return ladder(values, operation, order.startswith("ascending"))
    if order == "sequential":
        return list(accumulate(values, operation))
    return [list(accumulate(values[i::-1], operation))[-1] for i in range(len(values))]


def groups(x: np.ndarray[Any, Any], width: int) -> Iterator[Values]:
    for base in range(0, x.size, width):
        yield list(x[base : base + width])


@pytest.mark.parametrize(("order", "size"), list(product(ORDERS, [64, 45])))
def test_orders_of_sums_and_products(order: str, size: int) -> None:
    with fidelity.switched(simd_sum=order):
        for (name, operation), (scope, width) in product(
            [("sum", np.add), ("product", np.multiply)], [("simd", 32), ("quad", 4)]
        ):
            x = MIXED[:size] if name == "sum" else np.abs(MIXED[:size]) ** np.float32(0.1)
            got = floats(f"out[i] = {scope}_{name}(v);", x)
            want = [reduction(g, operation, order) for g in groups(x, width) for _ in g]
            assert got.tolist() == [float(w) for w in want], (scope, name)
            inclusive = [w for g in groups(x, width) for w in prefixes(g, operation, order)]
            assert floats(f"out[i] = {scope}_prefix_inclusive_{name}(v);", x).tolist() == [float(w) for w in inclusive]
            first = 0.0 if name == "sum" else 1.0
            exclusive = [first if i % width == 0 else float(inclusive[i - 1]) for i in range(size)]
            assert floats(f"out[i] = {scope}_prefix_exclusive_{name}(v);", x).tolist() == exclusive


def test_the_orders_give_four_different_sums() -> None:
    x = np.random.default_rng(3).standard_normal(1024).astype(np.float32)
    sums = set()
    for order in ORDERS:
        with fidelity.switched(simd_sum=order):
            sums.add(tuple(run("out[i] = simd_sum(v);", x)))
    assert len(sums) == len(ORDERS)


@pytest.mark.parametrize("order", ORDERS)
def test_inactive_lanes_take_no_part_in_any_order(order: str) -> None:
    x = MIXED[:32]
    odd = list(x[1::2])
    with fidelity.switched(simd_sum=order):
        got = floats("out[i] = 0.0f; if (i % 2) out[i] = simd_sum(v);", x)
        last = floats("out[i] = 0.0f; if (i % 2) out[i] = simd_prefix_inclusive_sum(v);", x)
    assert got[1::2].tolist() == [float(reduction([*odd], np.add, order))] * 16
    assert last[31] == pytest.approx(float(np.sum(odd, dtype=np.float64)), rel=1e-5)
    assert last[1] == x[1]
    assert last[3] == x[1] + x[3]


UNMOVED = [
    "out[i] = v * 1.5f;",
    "out[i] = simd_max(v) - simd_min(v);",
    "out[i] = simd_shuffle_xor(v, 3) + v;",
    "out[i] = float(simd_sum(int(v))) + float(simd_prefix_inclusive_sum(int(v)));",
    "out[i] = sqrt(abs(v)) / 3.0f;",
    "out[i] = fma(v, 3.0f, 0.1f);",
    "{\n#pragma METAL fp contract(off)\nout[i] = v * 3.0f + 0.1f; }",
]


@pytest.mark.parametrize("source", UNMOVED)
def test_no_switch_moves_a_kernel_that_does_not_depend_on_it(source: str) -> None:
    want = run(source, MIXED)
    for name, values in fidelity.SWITCHES.items():
        for value in values[1:]:
            with fidelity.switched(**{name: value}):
                assert np.array_equal(run(source, MIXED), want), (name, value)


def test_switches_of_sums_need_no_second_object(monkeypatch: pytest.MonkeyPatch) -> None:
    from mlx_assay.impl.executors import objects

    built = []
    real = objects.build
    monkeypatch.setattr(objects, "build", lambda *given: built.append(given) or real(*given))
    kernel = metal_kernel("once", ["a"], ["out"], "uint i = thread_position_in_grid.x; out[i] = simd_sum(a[i]);")
    seen = set()
    for order in ORDERS:
        with use("host"), fidelity.switched(simd_sum=order):
            (out,) = kernel(
                inputs=[mx.array(MIXED)], output_shapes=[(64,)], output_dtypes=[mx.float32], grid=(64, 1, 1),
                threadgroup=(64, 1, 1),
            )  # fmt: skip
            seen.add(tuple(out.tolist()))
    assert len(built) == 1
    assert len(seen) > 1


def test_the_switches_are_recorded() -> None:
    for name, values in fidelity.SWITCHES.items():
        assert describe("host")[name] == values[0]
        for value in values:
            with fidelity.switched(**{name: value}):
                assert describe("host")[name] == value


def test_a_switch_or_value_that_is_not_known_is_named() -> None:
    with pytest.raises(ValueError, match="unknown switch 'rounding'='up': expected one of contraction"):
        fidelity.current().switched(rounding="up")
    with (
        pytest.raises(ValueError, match="switch 'contraction' is given 'maybe': expected one of on, off"),
        fidelity.switched(contraction="maybe"),
    ):
        raise AssertionError("the block ran")
    assert fidelity.current() == fidelity.Fidelity()


def test_every_thread_switches_for_itself() -> None:
    results: dict[str, float] = {}
    barrier = threading.Barrier(2)

    def work(value: str) -> None:
        with fidelity.switched(contraction=value):
            barrier.wait(timeout=60)
            results[value] = float(floats(ONE_PRODUCT, SQUARES)[0])
            barrier.wait(timeout=60)

    threads = [threading.Thread(target=work, args=(v,)) for v in ("on", "off")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == {"on": 2.0**-24, "off": 0.0}


def test_the_callers_own_floating_point_mode_has_no_part(mode_of_the_caller: Callable[[bool], None]) -> None:
    x = np.array([2.0**-126], np.float32)
    for caller in (True, False):
        mode_of_the_caller(caller)
        assert run("out[i] = v * 0.5f;", x).tolist() == [0]
        with fidelity.switched(f32_denormals="kept"):
            assert run("out[i] = v * 0.5f;", x).tolist() == [0x400000]


@pytest.fixture
def mode_of_the_caller() -> Iterator[Callable[[bool], None]]:
    """Sets whether this thread's own arithmetic flushes denormals."""
    torch = pytest.importorskip("torch")
    yield lambda flush: torch.set_flush_denormal(flush)
    torch.set_flush_denormal(False)
