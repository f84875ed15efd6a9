"""`--sensitivity`: each switch is told where it decides bits, by element, and nowhere else."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.conformance.checking.diagnostics import accumulations, transcendentals
from mlx_assay.conformance.checking.report import Sensitivity
from mlx_assay.conformance.checking.sensitivity import Senses, compared, encodings
from mlx_assay.impl.executors import fidelity, metal_kernel, use
from mlx_assay.impl.executors.observation import Launch
from mlx_assay.impl.executors.signature import Definition

SCHEDULES = ["in-order", "reverse", "round-robin", "pct:1"]
VALUES = {switch: values[1:] for switch, values in fidelity.SWITCHES.items()} | {"schedule": tuple(SCHEDULES[1:])}
LANE = "const uint i = thread_position_in_grid.x;"
KERNELS = {
    "contraction": f"{LANE} y[i] = x[i] * x[i] - 1.0f;",
    "f32_denormals": f"{LANE} y[i] = x[i] * 1e-39f;",
    "simd_sum": f"{LANE} y[i] = simd_sum(x[i]);",
    "schedule": f"{LANE} threadgroup float t[64]; t[i] = x[i]; y[i] = t[63 - i];",
    "nothing": f"{LANE} y[i] = x[i] + 1.0f;",
}


def launch_of(source: str, values: Any, dtype: Any = mx.float32) -> Launch:
    kernel = metal_kernel("k", ["x"], ["y"], source)

    def run() -> list[mx.array]:
        with use("host"):
            outputs: list[mx.array] = kernel(
                inputs=[mx.array(values)],
                grid=(64, 1, 1),
                threadgroup=(64, 1, 1),
                output_shapes=[(64,)],
                output_dtypes=[dtype],
            )
            return outputs

    return Launch(run, run)


def felt(*launches: Launch) -> list[Sensitivity]:
    senses = Senses(["y"])
    for launch in launches:
        senses.feel(launch, SCHEDULES)
    return senses.told()


@pytest.mark.parametrize("switch", KERNELS)
def test_a_kernel_made_for_a_switch_depends_on_it_alone(switch: str) -> None:
    values = np.linspace(1, 2, 64, dtype=np.float32) ** 3
    told = felt(launch_of(KERNELS[switch], values))
    assert [(one.output, one.switch, one.value) for one in told] == [
        ("y", name, value) for name, others in VALUES.items() for value in others
    ]
    assert {one.switch for one in told if one.differing} == {switch} - {"nothing"}
    for one in told:
        assert one.elements == 64
        assert (one.index is None) == (one.differing == 0) == (one.default == one.changed)


def test_launches_add_up_and_the_first_difference_stays() -> None:
    source = KERNELS["f32_denormals"]
    none, few = np.zeros(64, np.float32), np.zeros(64, np.float32)
    few[[5, 9]] = 1.0
    told = next(one for one in felt(launch_of(source, none), launch_of(source, few)) if one.switch == "f32_denormals")
    assert (told.differing, told.elements, told.index, told.default) == (2, 128, 5, "0x00000000")
    assert int(told.changed, 16) == np.float32(1e-39).view(np.uint32)


@pytest.mark.parametrize(
    ("array", "bits"),
    [
        (mx.array([1.0, -2.0], mx.bfloat16), [0x3F80, 0xC000]),
        (mx.array([1.0], mx.float16), [0x3C00]),
        (mx.array([True, False]), [1, 0]),
        (mx.array([-1], mx.int64), [2**64 - 1]),
        (mx.array(1.5), [0x3FC00000]),
        (mx.array([1 + 2j]), [0x400000003F800000]),
        (mx.zeros((0,)), []),
    ],
    ids=["bfloat16", "float16", "bool", "int64", "scalar", "complex64", "empty"],
)
def test_encodings(array: mx.array, bits: list[int]) -> None:
    assert encodings(array).tolist() == bits


def test_nan_payloads_and_the_sign_of_zero_count() -> None:
    one = np.array([0x7FC00000, 0x00000000, 0x3F800000], np.uint32)
    other = np.array([0x7FC00001, 0x80000000, 0x3F800000], np.uint32)
    found = compared("y", "schedule", "reverse", one, other)
    assert (found.differing, found.index, found.default, found.changed) == (2, 0, "0x7fc00000", "0x7fc00001")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("y[0] = exp(x[0]) + metal::precise::log2(x[1]) + fast::tanh(x[2]);", ["exp", "log2", "tanh"]),
        ("y[0] = sqrt(x[0]) + fma(x[0], x[1], x[2]) + expand(x[0]) + my_exp(x[0]);", []),
        ("// exp(x)\n/* log(\nx) */ y[0] = pow (x[0], 2) + asinh(x[0]);", ["asinh", "pow"]),
        ("struct W { float v; };\ninline float exp(W w) { return w.v; }\ny[0] = exp(W{x[0]});", []),
        ("float exp(W w) { return w.v; }\ny[0] = exp(w) + metal::exp(x[0]) + log(x[0]);", ["exp", "log"]),
        ("if (x[0] > 0) { y[0] = exp(x[0]); } else y[0] = sin(x[0]);", ["exp", "sin"]),
        ("float v = exp(x[0]) * float2{1, 2}.x;\nfor (;;) { y[0] = v; }", ["exp"]),
        ("y[0] = mine::exp(x[0]) + w.exp(1);", []),
    ],
)
def test_transcendentals_are_read_from_the_text(source: str, names: list[str]) -> None:
    assert transcendentals(Definition("k", ("x",), ("y",), source)) == names


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("y[0] = dot(a, b) + metal::length(a);", ["dot", "length"]),
        ("simdgroup_multiply_accumulate(c, a, b, c);", ["simdgroup_multiply_accumulate"]),
        ("y[0] = x[0] * x[1]; // dot(a, b)", []),
        ("float dot(thread float* a) { return a[0]; }\ny[0] = dot(a);", []),
    ],
)
def test_accumulations_are_read_from_the_text(source: str, names: list[str]) -> None:
    assert accumulations(Definition("k", ("x",), ("y",), source)) == names
