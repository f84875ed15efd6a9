"""A lane that asks alone: the checker knows who asks, whatever its neighbours asked for before."""

from __future__ import annotations

import mlx.core as mx
import pytest

from mlx_assay.impl.executors import DivergenceWarning, metal_kernel, use
from mlx_assay.impl.executors.checker import Kind, check

CALLS = {
    "simd_shuffle(v, ushort({}))": ("lane", "5"),
    "simd_shuffle_xor(v, ushort({}))": ("0", "5"),
    "simd_shuffle_and_fill_down(v, v, ushort({}), ushort(32))": ("0", "3"),
    "simd_shuffle_and_fill_up(v, v, ushort({}), ushort(32))": ("0", "3"),
    "simd_shuffle(v, {})": ("lane", "40"),
}
"""Operation -> an argument by which every lane asks itself, or the one that asks alone, and another."""


def test_who_asks_alone_is_told() -> None:
    lines = ["uint i = thread_index_in_threadgroup, v = a[i], lane = 0; out[i] = v;"]
    for lane in (0, 1, 30, 31):
        for call, (own, other) in CALLS.items():
            lines += [
                f"lane = {lane}; out[i] += {call.format(own)};",
                f"if (i == {lane}) out[i] += {call.format(other)};",
            ]
    kernel = metal_kernel("alone", ["a"], ["out"], "\n".join(lines))

    def launch() -> list[mx.array]:
        return kernel(
            inputs=[mx.arange(32, dtype=mx.uint32)],
            grid=(32, 1, 1),
            threadgroup=(32, 1, 1),
            output_shapes=[(32,)],
            output_dtypes=[mx.uint32],
        )

    with use("host"):
        with pytest.warns(DivergenceWarning):
            (out,) = launch()
        findings = check(launch)[1]
    # A lane that never asks alone: its own value at first and three times a round, that of the round's lane twice.
    assert out.tolist()[7] == 7 + 4 * 3 * 7 + 2 * (0 + 1 + 30 + 31)
    told = [one.place.line for one in findings if one.kind is Kind.INACTIVE_LANE and one.place is not None]
    assert sorted(told) == list(range(3, len(lines) + 1, 2))
