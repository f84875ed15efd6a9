"""One launch of a stock kernel: what runs it, MLX's CPU operation, and how far the two may be apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary

Array = np.ndarray[Any, Any]

F32, F16, BF16 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
FLOATS = (F32, F16, BF16)
MANTISSA = {F32: 23, F16: 10, BF16: 7, np.dtype(np.complex64): 23}
U32 = 2.0**-24
"""Half a unit in the last place of 1 in f32: the most that rounding a normal number changes it by, relatively."""

NAMES = {F32: "float32", F16: "float16", BF16: "bfloat16"} | {
    np.dtype(t): t for t in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "complex64")
} | {np.dtype(bool): "bool_"}  # fmt: skip
METAL = {"float32": "float", "float16": "half", "bfloat16": "bfloat16_t", "bool_": "bool", "complex64": "complex64_t"}
METAL |= {
    name: f"{name}_t" for name in NAMES.values() if "int" in name
}  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """`run` gives the results of the kernel out of either library, `expected` those of MLX's CPU operation.

    Without `bound` both are the same bits. With it, `bound` gives exact values in float64 and how far a result may be
    from them, absolutely; `reason` says what the bound is made of. `doors`: "both", or "text" where MLX compiles the
    kernel when it is asked for, so that its library holds none, or "twin" where MLX ships no text. `also` names
    the other kernels that `run` launches.
    """

    header: str
    kernel: str
    shapes: str
    operation: str
    run: Callable[[RawLibrary], Array]
    expected: Callable[[], Array]
    bound: Callable[[], tuple[Array, Array]] | None = None
    reason: str = ""
    doors: str = "both"
    also: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kernel}-{self.shapes}".replace(" ", "")


def to_mlx(array: Array) -> Any:
    """The same bits as an MLX array; bfloat passes by way of its encoding."""
    if array.dtype == BF16:
        return mx.array(array.view(np.uint16)).view(mx.bfloat16)
    return mx.array(array)


def to_numpy(array: Any) -> Array:
    if array.dtype == mx.bfloat16:
        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)


def on_cpu(operation: Callable[..., Any], *arrays: Array) -> Array:
    """MLX's own operation on its CPU back end."""
    with mx.stream(mx.cpu):
        return to_numpy(operation(*map(to_mlx, arrays)))


def in_f32(operation: Callable[..., Any]) -> Callable[..., Any]:
    """The operation on f32 copies, rounded once: for those that MLX's CPU has in f32 alone."""

    def of(first: Any, *more: Any) -> Any:
        given = [a.astype(mx.float32) if mx.issubdtype(a.dtype, mx.floating) else a for a in (first, *more)]
        return operation(*given).astype(first.dtype)

    return of


def wide(array: Array) -> Array:
    return np.asarray(array, np.complex128 if array.dtype.kind == "c" else np.float64)


def rounding(array: Array, dtype: Any) -> Array:
    """The most that rounding these float64 values to a dtype changes them by: half a unit, or of the least normal."""
    least = 2.0**-14 if dtype == F16 else 2.0**-126
    magnitude = np.maximum(np.abs(array), least)
    return np.asarray(2.0 ** (np.floor(np.log2(magnitude)) - MANTISSA[np.dtype(dtype)] - 1), np.float64)


def encoding(array: Array) -> Array:
    """Bits, where every NaN is one."""
    if array.dtype.kind == "c":
        return encoding(array.view(np.float32))
    if array.dtype not in FLOATS:
        return array
    bits = array.view(np.uint32 if array.itemsize == 4 else np.uint16).copy()
    bits[np.isnan(wide(array))] = np.iinfo(bits.dtype).max
    return bits


def same(got: Array, expected: Array) -> bool:
    return (
        got.dtype == expected.dtype
        and got.shape == expected.shape
        and bool((encoding(got) == encoding(expected)).all())
    )


def within(got: Array, exact: Array, bound: Array) -> bool:
    return bool((np.abs(wide(got).reshape(exact.shape) - exact) <= bound).all())


def normal(dtype: Any, *shape: int, scale: float = 1.0, seed: int = 0) -> Array:
    made: Array = (np.random.default_rng((*shape, seed)).standard_normal(shape) * scale).astype(dtype)
    return made


def whole(dtype: Any, low: int, high: int, *shape: int, seed: int = 0) -> Array:
    made: Array = np.random.default_rng((*shape, seed)).integers(low, high, shape).astype(dtype)
    return made
