"""A packed token mask added to logits.

The contract is XGrammar's: apply_token_bitmask_mlx of mlc-ai/xgrammar (Apache-2.0), which adds 0 where a bit is set and
-inf where it is not.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import mlx.core as mx
import numpy as np

from mlx_assay.impl import executors
from mlx_assay.impl.kernels.graph import native, run
from mlx_assay.impl.kernels.text import metal_text

if TYPE_CHECKING:
    import torch

THREADS = 256
CHUNK_BYTES = 16
CHUNKS = 4
"""Of a thread, about: fewer threadgroups ran faster than one chunk a thread (docs/speed.md)."""
DTYPES = (mx.bfloat16, mx.float16, mx.float32)
LARGEST_SIZE = 2**31 - 1


def apply_token_bitmask(logits: mx.array, bits: np.ndarray | torch.Tensor | mx.array) -> mx.array:
    """Adds 0 to every logit whose bit is set and -inf to the others; one mask serves every row.

    The bit of token `id` is bit `id % 32` of word `id // 32`. Missing words reject, surplus words are ignored. The sum
    is kept as it is: a rejected NaN or +inf becomes NaN, an allowed -0 becomes +0. The words are copied during the
    call, so that a grammar matcher may change them before the result is evaluated.

    Args:
        logits: [..., V] of bf16, f16 or f32, in any layout, of 1 to 2^31 - 1 elements.
        bits: int32 [ceil(V / 32)], of NumPy, torch or MLX.

    Returns:
        [..., V] of the logits' dtype. Inside a trace that the executor cannot run in, MLX's own operations make it.

    Raises:
        TypeError: for bits that are not an int32 array of NumPy, torch or MLX.
        ValueError: for bits that are not one row of words, and for logits of another dtype, rank 0, or size.
    """
    _check_logits(logits)
    vocab = logits.shape[-1]
    words = mx.array(_words(bits, math.ceil(vocab / 32)))
    return _added(logits, words) if native(logits) else run(_masked, logits, words)


def _check_logits(logits: mx.array) -> None:
    if logits.dtype not in DTYPES:
        raise ValueError(f"Expected logits of bfloat16, float16 or float32 but got {logits.dtype}: use astype")
    if logits.ndim == 0 or not 0 < logits.size <= LARGEST_SIZE:
        raise ValueError(
            f"Expected logits [..., V] of 1 to 2^31 - 1 elements but got shape {tuple(logits.shape)} "
            f"with {logits.size} elements"
        )


def _words(bits: np.ndarray | torch.Tensor | mx.array, count: int) -> np.ndarray:
    """uint32 [count]: a copy of the first words, zeros where there are fewer."""
    if isinstance(bits, mx.array):
        given = np.array(bits) if bits.dtype == mx.int32 else None
    elif isinstance(bits, np.ndarray):
        given = bits if bits.dtype == np.int32 else None
    elif type(bits).__module__.partition(".")[0] == "torch" and str(getattr(bits, "dtype", "")) == "torch.int32":
        given = bits.detach().cpu().numpy()
    else:
        given = None
    if given is None:
        raise TypeError(
            f"Expected bits as an int32 array of NumPy, torch or MLX but got {type(bits).__name__} "
            f"of {getattr(bits, 'dtype', 'no dtype')}: view or convert the words as int32"
        )
    if given.ndim != 1:
        raise ValueError(f"Expected bits [words], one mask for every row, but got shape {given.shape}: pass one row")
    words = np.zeros(count, np.uint32)
    words[: given.size] = given[:count].view(np.uint32)
    return words


def _masked(logits: mx.array, words: mx.array) -> mx.array:
    vocab = logits.shape[-1]
    wanted = math.ceil(vocab * logits.dtype.size / (CHUNK_BYTES * CHUNKS))
    threads = min(THREADS, wanted)
    (out,) = _kernel()(
        inputs=[logits, words, mx.array(vocab, mx.uint32)],
        template=[("T", logits.dtype)],
        grid=(math.ceil(wanted / threads) * threads, logits.size // vocab, 1),
        threadgroup=(threads, 1, 1),
        output_shapes=[logits.shape],
        output_dtypes=[logits.dtype],
    )
    return out


def _added(logits: mx.array, words: mx.array) -> mx.array:
    """The same sum by MLX's own operations."""
    ids = mx.arange(logits.shape[-1], dtype=mx.uint32)
    allowed = (words[ids // 32] >> (ids % 32)) & 1
    return logits + mx.where(allowed == 1, 0.0, -math.inf).astype(logits.dtype)


@cache
def _kernel() -> executors.Kernel:
    return executors.metal_kernel(
        name="apply_token_bitmask",
        input_names=["logits", "bits", "vocab"],
        output_names=["out"],
        header=metal_text("token_bitmask_chunk"),
        source=metal_text("token_bitmask"),
    )
