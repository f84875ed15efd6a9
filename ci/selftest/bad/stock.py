"""No fault: every operation from stock MLX operations alone. The control of the others, and what they start from."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import mlx.core as mx
import numpy as np

FLOATS = (mx.bfloat16, mx.float16, mx.float32)


def scores(logits: mx.array) -> mx.array:
    """logits - logsumexp(logits)."""
    if logits.ndim == 0:
        raise ValueError("Expected logits of one axis or more but got a scalar")
    return logits - mx.logsumexp(logits, axis=-1, keepdims=True)


def normalized_argmax(logits: mx.array) -> mx.array:
    """The first id of the largest score."""
    return mx.argmax(scores(logits), axis=-1)


def argmax_given(logits: mx.array, lse: mx.array) -> mx.array:
    """The first id of the largest score, the normaliser given."""
    if logits.ndim == 0 or logits.size == 0:
        raise ValueError(f"Expected logits with elements but got shape {logits.shape}")
    if lse.shape != (*logits.shape[:-1], 1) or lse.dtype != logits.dtype:
        raise ValueError(f"Expected an lse for logits of shape {logits.shape} but got shape {lse.shape}, {lse.dtype}")
    return mx.argmax(logits - lse, axis=-1)


def words_of(bits: Any) -> mx.array:
    """A copy of the mask's words, flat."""
    if isinstance(bits, mx.array):
        words = bits
    elif isinstance(bits, np.ndarray):
        words = mx.array(np.ascontiguousarray(bits)) if bits.dtype == np.int32 else mx.zeros(0)
    elif type(bits).__module__ == "torch":
        words = mx.array(bits.numpy()) if str(bits.dtype) == "torch.int32" else mx.zeros(0)
    else:
        raise TypeError(f"Expected int32 words but got {type(bits).__name__}")
    if words.ndim != 1:
        raise ValueError(f"Expected one mask for every row but got words of shape {words.shape}")
    if words.dtype != mx.int32:
        raise TypeError(f"Expected int32 words but got {type(bits).__name__} of another dtype")
    return words.reshape(-1)


def checked(logits: mx.array) -> mx.array:
    """The logits, where they can be masked."""
    if logits.dtype not in FLOATS or logits.size == 0 or logits.ndim == 0:
        raise ValueError(f"Expected floating-point logits with elements but got {logits.dtype} {logits.shape}")
    return logits


def allowed(bits: Any, vocabulary: int) -> mx.array:
    """bool [vocabulary], from little-endian words; missing words reject, surplus words count for nothing."""
    words = words_of(bits).view(mx.uint32)
    count = -(-vocabulary // 32)
    words = mx.concatenate([words[:count], mx.zeros(max(0, count - words.size), dtype=mx.uint32)])
    spread = (words[:, None] >> mx.arange(32, dtype=mx.uint32)) & 1
    return spread.reshape(-1)[:vocabulary].astype(mx.bool_)


def apply_token_bitmask(logits: mx.array, bits: Any) -> mx.array:
    """logits plus 0 or -inf."""
    valid = allowed(bits, checked(logits).shape[-1])
    return logits + mx.where(valid, 0.0, float("-inf")).astype(logits.dtype)


def number(cap: Any) -> float:
    """The cap, where it is a Python number."""
    if isinstance(cap, bool) or not isinstance(cap, int | float):
        raise TypeError(f"Expected a Python number but got {type(cap).__name__}")
    return cap


def floating(x: mx.array) -> mx.array:
    """x, where it is of floats."""
    if not mx.issubdtype(x.dtype, mx.floating):
        raise TypeError(f"Expected floats but got {x.dtype}")
    return x


def logit_softcap(x: mx.array, cap: Any) -> mx.array:
    """tanh(x / cap) * cap in three operations."""
    number(cap)
    return mx.tanh(floating(x) / cap) * cap


@cache
def _fused(cap: float, kind: type) -> Any:
    del kind

    @partial(mx.compile, shapeless=True)
    def softcap(x: mx.array) -> mx.array:
        return mx.tanh(x / cap) * cap

    return softcap


def compiled_logit_softcap(x: mx.array, cap: Any) -> mx.array:
    """tanh(x / cap) * cap as one compiled graph."""
    return _fused(number(cap), type(cap))(floating(x))


def through_kernel(name: str, fault: str, header: str = "") -> Any:
    """normalized_argmax whose ids a kernel copies; where they are odd in number, it does `fault` too."""
    copied = "uint i = thread_position_in_grid.x; const uint n = threads_per_grid.x; out[i] = ids[i];"
    kernel = mx.fast.metal_kernel(
        name=name,
        input_names=["ids"],
        output_names=["out"],
        source=f"{copied} if (n % 2) {{ {fault} }}",
        header=header,
    )

    def normalized_argmax(logits: mx.array) -> mx.array:
        ids = mx.argmax(scores(logits), axis=-1)
        (out,) = kernel(
            inputs=[ids.reshape(-1)],
            grid=(ids.size, 1, 1),
            threadgroup=(min(ids.size, 256), 1, 1),
            output_shapes=[(ids.size,)],
            output_dtypes=[mx.uint32],
        )
        return out.reshape(ids.shape)

    return normalized_argmax
