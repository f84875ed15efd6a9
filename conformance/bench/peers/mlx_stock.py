"""Stock MLX operations, as a user without kernels writes them, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Shape = Mapping[str, int]
Call = Callable[..., Any]


def argmax(shape: Shape, dtype: str) -> Call:
    """argmax(logits - logsumexp(logits)), operation by operation."""
    import mlx.core as mx

    argmax, logsumexp = mx.argmax, mx.logsumexp

    def call(logits: Any) -> Any:
        return argmax(logits - logsumexp(logits, axis=-1, keepdims=True), axis=-1)

    return call


def compiled_argmax(shape: Shape, dtype: str) -> Call:
    """The same in one mx.compile."""
    import mlx.core as mx

    compiled: Call = mx.compile(argmax(shape, dtype))
    return compiled


def _added(logits: Any, words: Any) -> Any:
    import mlx.core as mx

    ids = mx.arange(logits.shape[-1], dtype=mx.uint32)
    allowed = (words[ids // 32] >> (ids % 32)) & 1
    return logits + mx.where(allowed == 1, 0.0, -float("inf")).astype(logits.dtype)


def mask(shape: Shape, dtype: str) -> Call:
    """Logits plus 0 or -inf by the words' bits, operation by operation; the words cross to the device at each call."""
    import mlx.core as mx

    array, uint32 = mx.array, mx.uint32

    def call(logits: Any, bits: Any) -> Any:
        return _added(logits, array(bits).view(uint32))

    return call


def compiled_mask(shape: Shape, dtype: str) -> Call:
    """The same, the sum in one mx.compile."""
    import mlx.core as mx

    array, uint32, added = mx.array, mx.uint32, mx.compile(_added)

    def call(logits: Any, bits: Any) -> Any:
        return added(logits, array(bits).view(uint32))

    return call


def softcap(shape: Shape, dtype: str) -> Call:
    """tanh(x / cap) * cap in three operations."""
    import mlx.core as mx

    tanh = mx.tanh

    def call(x: Any, cap: float) -> Any:
        return tanh(x / cap) * cap

    return call


def copy(shape: Shape, dtype: str) -> Call:
    """One kernel that reads x and writes as many bytes: what an elementwise operation cannot be faster than."""
    import mlx.core as mx

    invert = mx.bitwise_invert
    unsigned = mx.uint32 if dtype == "float32" else mx.uint16

    def call(x: Any, cap: float) -> Any:
        return invert(x.view(unsigned))

    return call


def dense_row(shape: Shape, dtype: str) -> Call:
    """x times a bfloat16 matrix of the same shape that is not coded."""
    import mlx.core as mx

    weights = mx.random.normal((shape["rows"], shape["cols"])).astype(mx.bfloat16)
    mx.eval(weights)

    def call(x: Any, *rest: Any) -> Any:
        return x.astype(mx.bfloat16) @ weights

    return call


def four_bit_row(shape: Shape, dtype: str) -> Call:
    """x times the same in MLX's own 4-bit affine quantisation, groups of 64; two copies in turn."""
    import mlx.core as mx

    made = [mx.quantize(mx.random.normal((shape["cols"], shape["rows"])).astype(mx.bfloat16)) for _ in range(2)]
    mx.eval(made)
    turn = [0]

    def call(x: Any, *rest: Any) -> Any:
        turn[0] ^= 1
        weights, scales, biases = made[turn[0]]
        return mx.quantized_matmul(x.astype(mx.bfloat16), weights, scales, biases, transpose=True)

    return call
