"""The fidelity switches on Apple's compiled kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlx_assay.impl.executors import fidelity

SQUARE = "declare float @llvm.fmuladd.f32(float, float, float)"
FUSED = "%r = call float @llvm.fmuladd.f32(float %x0, float %x0, float %x1)"
X = np.full(4, 1 + 2.0**-12, np.float32)
MINUS = np.full(4, -(1 + 2.0**-11), np.float32)


def test_contraction_follows_the_switch_at_each_launch(forge: Any) -> None:
    kernel = forge.kernel(forge.elementwise(FUSED, "ff", "f", SQUARE))
    for value, want in (("on", 2.0**-24), ("off", 0.0), ("on", 2.0**-24)):
        with fidelity.switched(contraction=value):
            assert forge.run(kernel, X, MINUS, output="f").tolist() == [want] * 4


def test_a_function_may_be_pinned(forge: Any) -> None:
    kernel = forge.kernel(forge.elementwise(FUSED, "ff", "f", SQUARE), contraction=True)
    with fidelity.switched(contraction="off"):
        assert forge.run(kernel, X, MINUS, output="f").tolist() == [2.0**-24] * 4


def test_a_dot_product_is_contracted_as_the_switch_says(forge: Any) -> None:
    body = (
        "%a = insertelement <2 x float> poison, float %x0, i32 0\n"
        "  %b = insertelement <2 x float> %a, float %x0, i32 1\n"
        "  %m = fneg float %x0\n  %c = insertelement <2 x float> %a, float %m, i32 1\n"
        "  %r = call float @air.dot.v2f32(<2 x float> %b, <2 x float> %c)"
    )
    text = forge.elementwise(body, "f", "f", "declare float @air.dot.v2f32(<2 x float>, <2 x float>)")
    kernel = forge.kernel(text)
    assert forge.run(kernel, X, output="f").tolist() == [-(2.0**-24)] * 4
    with fidelity.switched(contraction="off"):
        assert forge.run(kernel, X, output="f").tolist() == [0.0] * 4


@pytest.mark.parametrize("operand", ["%x0", "0x3810000000000000"])
def test_denormals(forge: Any, operand: str) -> None:
    kernel = forge.kernel(forge.elementwise(f"%r = fmul float {operand}, 0.5", "f", "f", ""))
    x = np.full(4, 2.0**-126, np.float32)
    for value, want in (("flushed", 0), ("kept", 0x400000), ("flushed", 0)):
        with fidelity.switched(f32_denormals=value):
            assert forge.run(kernel, x, output="f").view(np.uint32).tolist() == [want] * 4


def test_orders_of_a_sum(forge: Any) -> None:
    kernel = forge.kernel(forge.call("air.simd_sum.f32", "f", "f"))
    big = np.float32(2.0**24)
    x = np.zeros(32, np.float32)
    x[[0, 1, 2, 3, 16]] = [big, 1, 1, -big, 1]
    # 2**24 + 1 is 2**24 again: what is left of the ones tells the order.
    wants = {
        # ((2**24 + 1) + (1 - 2**24)) + 1: the second pair is exact.
        "ascending-butterfly": 2.0,
        # (2**24 + 1), 1, 1, -2**24; then 0 with 2 and 1 with 3: 2**24 + 1 + (1 - 2**24).
        "descending-butterfly": 1.0,
        # 2**24 absorbs two ones, then nothing, then one.
        "sequential": 1.0,
        # 1 - 2**24 is exact, then two ones, then 2**24.
        "reverse-sequential": 3.0,
    }
    for order, want in wants.items():
        with fidelity.switched(simd_sum=order):
            assert forge.run(kernel, x, output="f").tolist() == [want] * 32, order
