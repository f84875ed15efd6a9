"""Lanes that ask without the others, and what is no lane: neither earlier questions count, nor what lies beyond."""

from __future__ import annotations

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import metal_kernel, use

pytestmark = pytest.mark.filterwarnings("ignore::mlx_assay.impl.executors.DivergenceWarning")


def launched(body: str, count: int) -> list[int]:
    """What 32 lanes make of the numbers 0 to 31."""
    kernel = metal_kernel("apart", ["a"], ["out"], body)
    with use("host"):
        (out,) = kernel(
            inputs=[mx.arange(32, dtype=mx.uint32)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(count,)],
            output_dtypes=[mx.uint32],
        )
    return [int(each) for each in out.tolist()]


@pytest.mark.parametrize("way", ["down", "up"])
def test_a_window_is_that_of_the_lanes_that_ask(way: str) -> None:
    body = (
        "uint i = thread_position_in_grid.x, v = a[i];\n"
        f"uint r = simd_shuffle_and_fill_{way}(v, v + 100, ushort(2), ushort(8));\n"
        f"if (i >= 16) r = simd_shuffle_and_fill_{way}(v, v + 100, ushort(1), ushort(4));\n"
        "out[i] = r;"
    )
    out = launched(body, 32)

    def window(lane: int, delta: int, width: int) -> int:
        base = lane // width * width
        lanes = list(range(base, base + width))
        filling = [one + 100 for one in lanes]
        row = lanes + filling if way == "down" else filling + lanes
        return row[lane - base + (delta if way == "down" else width - delta)]

    assert out == [window(lane, *((2, 8) if lane < 16 else (1, 4))) for lane in range(32)]


def test_nobody_votes_beside_the_32_lanes() -> None:
    body = (
        "uint i = thread_position_in_grid.x;\n"
        "out[2 * i] = simd_all(a[i] < 32u);\n"
        "out[2 * i + 1] = uint(ulong(simd_ballot(a[i] < 32u)) >> 32u);"
    )
    out = launched(body, 64)
    assert out == [1, 0] * 32


def test_who_waits_elsewhere_waits_on() -> None:
    calls = ("simd_broadcast_first(v)", "quad_broadcast_first(v)")
    lines = ["uint i = thread_position_in_grid.x, v = a[i];"]
    for number, call in enumerate(calls):
        lines += [f"if (i >= 8) out[i + {32 * number}] = {call};", f"else out[i + {32 * number}] = simd_sum(v);"]
    out = launched("\n".join(lines), 64)
    summed = [sum(range(8))] * 8
    assert out == [*summed, *[8] * 24, *summed, *(i // 4 * 4 for i in range(8, 32))]
