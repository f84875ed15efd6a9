"""The executor where one bit of its runtime decides: exact ties, sums just below them, lanes of a quad that turn."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import metal_kernel, use


def run(source: str, inputs: Sequence[np.ndarray], dtype: mx.Dtype, size: int) -> mx.array:
    names = list("abc"[: len(inputs)])
    kernel = metal_kernel("edges", names, ["out"], f"uint i = thread_position_in_grid.x;\n{source}")
    with use("host"):
        (out,) = kernel(
            inputs=[mx.array(one) for one in inputs],
            output_shapes=[(size,)],
            output_dtypes=[dtype],
            grid=(size, 1, 1),
            threadgroup=(size, 1, 1),
        )
    return out


def test_a_half_fma_just_below_a_tie_is_rounded_down() -> None:
    # 1023 * 1025 = 2**20 - 1: the product is 2**-11 - 2**-31, and the sum lies 2**-31 below the tie of 0x3c01 and
    # 0x3c02, so that f32 would round it to the tie.
    a, b, c = 1023 * 2.0**-10, 1025 * 2.0**-21, 1 + 2.0**-10
    inputs = [np.array([one, -one], np.float16) for one in (a, b, c)]
    inputs[1] = np.abs(inputs[1])
    assert [float(one[0]) for one in inputs] == [a, b, c]
    out = run("out[i] = fma(a[i], b[i], c[i]);", inputs, mx.float16, 2)
    assert np.array(out.view(mx.uint16)).tolist() == [0x3C01, 0xBC01]


@pytest.mark.parametrize("shift", [16, 20, 23])
def test_an_integer_that_is_a_tie_of_bfloat_goes_to_even(shift: int) -> None:
    # 257 lies between 256 and 258, 259 between 258 and 260, which are neighbours in bfloat; more than 24 bits each.
    integers = np.array([257 << shift, 259 << shift, (257 << shift) + 1, (259 << shift) - 1], np.uint32)
    want = np.array([256, 260, 258, 258]).astype(np.float64) * 2.0**shift
    out = run("out[i] = bfloat(a[i]);", [integers], mx.bfloat16, 4)
    got = np.array(out.view(mx.uint16)).view(ml_dtypes.bfloat16).astype(np.float64)
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("delta", [0, 1, 2, 3])
@pytest.mark.parametrize(("way", "sign"), [("down", 1), ("up", -1)])
def test_quads_turn_within_themselves(way: str, sign: int, delta: int) -> None:
    values = np.arange(100, 132, dtype=np.uint32)
    out = run(f"out[i] = quad_shuffle_rotate_{way}(a[i], {delta});", [values], mx.uint32, 32)
    lanes = np.arange(32)
    assert np.array(out).tolist() == values[lanes // 4 * 4 + (lanes % 4 + sign * delta) % 4].tolist()
