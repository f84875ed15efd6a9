"""What `metal_kernel` and its kernels take and refuse is what MLX's own do, asked side by side."""

from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl.executors import use
from mlx_assay.impl.executors.kernel import metal_kernel

SOURCE = "uint i = thread_position_in_grid.x; out[i] = a[i];"
A = mx.arange(8.0)


class Index:
    def __index__(self) -> int:
        return 8


class Number:
    def __int__(self) -> int:
        return 8


MAKING: dict[str, dict[str, Any]] = {
    "names-in-a-tuple": {"input_names": ("a",)},
    "name-alone": {"input_names": "a"},
    "name-of-output-alone": {"output_names": "out"},
    "names-in-a-set": {"input_names": {"a"}},
    "names-in-a-dictionary": {"input_names": {"a": 1}},
    "no-text": {"source": None},
    "no-header": {"header": None},
    "no-name": {"name": None},
    "number-for-a-truth": {"ensure_row_contiguous": 1},
    "none-for-a-truth": {"atomic_outputs": None},
}
CALLING: dict[str, dict[str, Any]] = {
    "plain": {},
    "grid-of-numpy": {"grid": (np.prod([2, 4]), np.int32(1), np.uint8(1))},
    "threadgroup-of-numpy": {"threadgroup": (np.int64(8), 1, 1)},
    "grid-in-an-array": {"grid": np.array([8, 1, 1])},
    "grid-with-an-array": {"grid": (np.array(8), mx.array(1), 1)},
    "grid-with-an-index": {"grid": (Index(), 1, True)},
    "grid-with-a-number": {"grid": (Number(), 1, 1)},
    "grid-with-a-float": {"grid": (8.0, 1, 1)},
    "grid-with-a-float-of-numpy": {"grid": (np.float32(8), 1, 1)},
    "grid-with-a-text": {"grid": ("8", 1, 1)},
    "grid-of-two": {"grid": (8, 1)},
    "grid-of-four": {"grid": (8, 1, 1, 1)},
    "grid-in-a-text": {"grid": "811"},
    "shape-of-numpy": {"output_shapes": [(np.int64(8),)]},
    "shape-in-an-array": {"output_shapes": [np.array([8])]},
    "shape-alone": {"output_shapes": [8]},
    "shape-with-a-float": {"output_shapes": [(8.0,)]},
    "shapes-in-a-set": {"output_shapes": {(8,)}},
    "too-few-shapes": {"output_shapes": []},
    "dtypes-in-a-tuple": {"output_dtypes": (mx.float32,)},
    "dtype-by-name": {"output_dtypes": ["float32"]},
    "dtype-of-numpy": {"output_dtypes": [np.float32]},
    "too-few-dtypes": {"output_dtypes": []},
    "too-few-inputs": {"inputs": []},
    "input-of-numpy": {"inputs": [np.arange(8, dtype=np.float32)]},
    "input-in-a-list": {"inputs": [[1.0, 2.0]]},
    "input-in-a-tuple": {"inputs": [(1.0, 2.0)]},
    "input-is-a-text": {"inputs": ["x"]},
    "input-is-none": {"inputs": [None]},
    "inputs-in-a-dictionary": {"inputs": {0: A}},
    "template-in-lists": {"template": [["N", 3]]},
    "template-in-a-dictionary": {"template": {"N": 3}},
    "template-of-three": {"template": [("N", 1, 2)]},
    "template-without-a-name": {"template": [(1, 2)]},
    "template-of-31-bits": {"template": [("N", 2**31 - 1)]},
    "template-of-minus-31-bits": {"template": [("N", -(2**31))]},
    "template-of-32-bits": {"template": [("N", 2**31)]},
    "template-of-a-float": {"template": [("N", 1.5)]},
    "template-of-numpy": {"template": [("N", np.int32(3))]},
    "template-of-a-truth-of-numpy": {"template": [("N", np.bool_(True))]},
    "value-is-a-text": {"init_value": "x"},
    "value-of-numpy": {"init_value": np.float32(2)},
    "value-in-an-array": {"init_value": mx.array(2.0)},
    "value-is-complex": {"init_value": 1j},
    "value-beyond-float": {"init_value": 10**400},
    "value-is-a-truth": {"init_value": True},
    "verbose-number": {"verbose": 1},
    "verbose-truth-of-numpy": {"verbose": np.bool_(False)},
    "stream-is-a-text": {"stream": "x"},
    "stream-is-a-device": {"stream": mx.cpu},
    "unknown-word": {"foo": 1},
}


def make(maker: Any, **changed: Any) -> Any:
    given = {"name": "arguments", "input_names": ["a"], "output_names": ["out"], "source": SOURCE}
    return maker(**given | changed)


def call(kernel: Any, **changed: Any) -> Any:
    given = {"inputs": [A], "grid": (8, 1, 1), "threadgroup": (8, 1, 1)}
    return kernel(**given | {"output_shapes": [(8,)], "output_dtypes": [mx.float32]} | changed)


def refusal(function: Any) -> type[Exception] | None:
    """The kind of error; that there is no Metal is none, and comes after all others."""
    try:
        function()
    except Exception as error:
        return None if "No Metal" in str(error) else type(error)
    return None


@pytest.mark.parametrize("name", MAKING)
def test_kernels_are_made_of_what_mlx_makes_them(name: str) -> None:
    theirs = refusal(lambda: make(mx.fast.metal_kernel, **MAKING[name]))
    assert refusal(lambda: make(metal_kernel, **MAKING[name])) == theirs
    assert (theirs is None) == (name == "names-in-a-tuple")


@pytest.mark.parametrize("name", CALLING)
def test_kernels_are_called_with_what_mlx_calls_them(name: str) -> None:
    theirs = refusal(lambda: call(make(mx.fast.metal_kernel), **CALLING[name]))
    with use("host"):
        assert refusal(lambda: call(make(metal_kernel), **CALLING[name])) == theirs


def test_grids_of_numpy_run() -> None:
    with use("host"):
        (out,) = call(make(metal_kernel), grid=(np.prod([2, 4]), 1, 1), output_shapes=[(np.int64(8),)])
    assert out.tolist() == list(range(8))


@pytest.mark.parametrize("dtype", [mx.uint8, mx.uint32, mx.int8, mx.bool_, mx.float16, mx.bfloat16, mx.complex64])
@pytest.mark.parametrize("value", [-1, 300.7, 0.1])
def test_initial_values_are_those_of_mlx(dtype: Any, value: float) -> None:
    with use("host"):
        (out,) = call(make(metal_kernel, source=""), output_dtypes=[dtype], init_value=value)
    assert mx.array_equal(out, mx.full((8,), mx.array(value, dtype), dtype))


def square(w: mx.array) -> mx.array:
    with use("host"):
        return call(make(metal_kernel, source="uint i = thread_position_in_grid.x; out[i] = a[i] * a[i];"), inputs=[w])[
            0
        ]


ASKING: dict[str, Any] = {
    "grad": lambda: mx.grad(lambda w: square(w).sum())(A),
    "value_and_grad": lambda: mx.value_and_grad(lambda w: (square(w) * w).sum())(A),
    "vjp": lambda: mx.vjp(square, [A], [A]),
    "jvp": lambda: mx.jvp(square, [A], [A]),
    "checkpoint": lambda: mx.grad(mx.checkpoint(lambda w: (square(w) * w).sum()))(A),
}


@pytest.mark.parametrize("name", ASKING)
def test_a_derivative_through_a_kernel_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^\[Primitive::[vj][jv]p\] Not implemented for CustomKernel\.$"):
        mx.eval(ASKING[name]())


def test_a_derivative_around_a_kernel_is_none_of_its_business() -> None:
    stopped = mx.grad(lambda w: (mx.stop_gradient(square(w)) * w).sum())(A)
    assert stopped.tolist() == [i * i for i in range(8)]
    assert mx.grad(lambda w: (square(A) * w).sum())(A).tolist() == stopped.tolist()


def test_a_derivative_of_the_authors_own_is_taken() -> None:
    function: Any = mx.custom_function(square)
    function.vjp(lambda w, cotangent, _: 2 * w * cotangent)
    assert mx.grad(lambda w: function(w).sum())(A).tolist() == [2.0 * i for i in range(8)]


def test_a_grid_of_two_axes_is_told_what_the_third_is() -> None:
    kernel = metal_kernel("k", ["a"], ["out"], SOURCE)
    with use("host"), pytest.raises(TypeError, match=r"got \(8, 1\), 2 of them: an axis that is not used is 1"):
        kernel(inputs=[A], grid=(8, 1), threadgroup=(8, 1, 1), output_shapes=[(8,)], output_dtypes=[mx.float32])
