"""Greedy selection over normalized logits, in two stages and without an array of scores."""

from __future__ import annotations

import importlib.metadata
import math
import re
from enum import IntEnum
from functools import cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.executors.cuda import device
from mlx_assay.impl.kernels.graph import native, run
from mlx_assay.impl.kernels.text import metal_text

CHUNK_BYTES = 16
SIMDGROUP = 32
MOST_READERS = 512
MLX_READERS = 1024
"""As many as the threads of MLX's CUDA logsumexp, whose order of sums depends on it."""
SUMS_PROVEN = {("0.32.4", 90)}
"""Releases of MLX and compute capabilities where the bits were compared: ci/selftest/cuda/test_cuda_sums.py."""
DTYPES = (mx.bfloat16, mx.float16, mx.float32)
NAN_FIRST_SINCE = (0, 32, 3)
"""ml-explore/mlx#4291."""


class NanRule(IntEnum):
    """Which NaN score MLX's argmax lets win: the first, since 0.32.3; before, none, but on the CPU one at id 0."""

    SKIPPED = 0
    FIRST = 1
    LEADING = 2


def normalized_argmax(logits: mx.array) -> mx.array:
    """Ids of the greatest normalized logits: argmax(logits - logsumexp(logits)) along the last axis, bit for bit.

    Scores are rounded to the logits' dtype, the lowest id wins every tie, ties made by that rounding included, and
    NaN scores follow the argmax of the installed MLX (see NanRule). The logsumexp is MLX's own.

    Args:
        logits: [..., V] of bf16, f16 or f32, in any layout. Other dtypes, and arrays inside a trace that the executor
            cannot run in (a shapeless mx.compile, or any trace on the host executor), take MLX's own operations.

    Returns:
        uint32 [...].

    Raises:
        ValueError: for 0-d logits, and as MLX does for empty ones.
    """
    _check_rank(logits)
    if logits.size == 0 or logits.dtype not in DTYPES or native(logits):
        return mx.argmax(logits - mx.logsumexp(logits, axis=-1, keepdims=True), axis=-1)
    return run(_normalized, logits)


def argmax_given(logits: mx.array, lse: mx.array) -> mx.array:
    """The core of normalized_argmax with the logsumexp given: argmax(logits - lse) along the last axis, bit for bit.

    Args:
        logits: [..., V], as for normalized_argmax.
        lse: [..., 1] of the logits' dtype; any values, also such as are no logsumexp of these logits.

    Returns:
        uint32 [...].

    Raises:
        ValueError: for 0-d or empty logits, or an lse of another shape or dtype.
    """
    _check_rank(logits)
    expected = (*logits.shape[:-1], 1)
    if tuple(lse.shape) != expected or lse.dtype != logits.dtype:
        raise ValueError(
            f"Expected lse of shape {expected} and {logits.dtype} for logits of shape {tuple(logits.shape)} "
            f"but got shape {tuple(lse.shape)} and {lse.dtype}: use mx.logsumexp(logits, axis=-1, keepdims=True)"
        )
    if logits.size == 0 or logits.dtype not in DTYPES or native(logits, lse):
        return mx.argmax(logits - lse, axis=-1)
    return run(_selected, logits, lse)


def _check_rank(logits: mx.array) -> None:
    if logits.ndim == 0:
        raise ValueError("Expected logits with a vocabulary axis, [..., V], but got a 0-d array")


def _normalized(logits: mx.array) -> mx.array:
    if _sums_proven():
        return _launched(_kernel("sums"), MLX_READERS, logits)
    logits = mx.contiguous(logits)
    return _selected(logits, mx.logsumexp(logits, axis=-1, keepdims=True))


def _sums_proven() -> bool:
    """Whether the logsumexp that the kernel makes itself is known to have the bits of MLX's here."""
    return executors.current() == "cuda" and (_mlx_version(), device.capability()) in SUMS_PROVEN


def _selected(logits: mx.array, lse: mx.array) -> mx.array:
    return _launched(_kernel("maxima"), MOST_READERS, logits, lse)


def _launched(kernel: executors.Kernel, most: int, logits: mx.array, *lse: mx.array) -> mx.array:
    """A threadgroup a row, of so many readers as find a chunk, rounded up to a power of two and to a simdgroup."""
    vocab = logits.shape[-1]
    chunks = math.ceil(vocab * logits.dtype.size / CHUNK_BYTES)
    readers = min(most, max(SIMDGROUP, 1 << (chunks - 1).bit_length()))
    (ids,) = kernel(
        inputs=[logits, *lse, mx.array(vocab, mx.uint32)],
        template=[("T", logits.dtype), ("NAN_RULE", int(nan_rule()))],
        grid=(readers, logits.size // vocab, 1),
        threadgroup=(readers, 1, 1),
        output_shapes=[logits.shape[:-1]],
        output_dtypes=[mx.uint32],
    )
    return ids


@cache
def _kernel(kept: str) -> executors.Kernel:
    """The kernel whose readers keep "maxima" alone, lse being given, or the "sums" that it is made of."""
    given = kept == "maxima"
    return executors.metal_kernel(
        name=f"normalized_argmax_{kept}",
        input_names=["logits", *(["lse"] if given else []), "vocab"],
        output_names=["out"],
        header=metal_text("argmax/shared") + metal_text(f"argmax/{kept}"),
        source="".join(metal_text(f"argmax/{part}") for part in ("scan", "given" if given else "summed", "search")),
    )


def nan_rule() -> NanRule:
    """The rule of the installed MLX on its default device."""
    if _release(_mlx_version()) >= NAN_FIRST_SINCE:
        return NanRule.FIRST
    return NanRule.LEADING if mx.default_device() == mx.Device(mx.cpu) else NanRule.SKIPPED


@cache
def _mlx_version() -> str:
    return importlib.metadata.version("mlx")


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
