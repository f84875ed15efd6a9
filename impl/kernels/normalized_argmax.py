"""Greedy selection over normalized logits, in two stages and without an array of scores."""

from __future__ import annotations

import importlib.metadata
import math
import re
from enum import IntEnum
from functools import cache

import mlx.core as mx

from mlx_assay.impl import executors
from mlx_assay.impl.kernels.graph import native, run
from mlx_assay.impl.kernels.text import metal_text

TILE = 1024
THREADS = 128
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
    logits = mx.contiguous(logits)
    return _selected(logits, mx.logsumexp(logits, axis=-1, keepdims=True))


def _selected(logits: mx.array, lse: mx.array) -> mx.array:
    vocab = logits.shape[-1]
    rows, tiles = logits.size // vocab, math.ceil(vocab / TILE)
    flat = logits.reshape(rows, vocab)
    dtype = [("T", logits.dtype)]
    maxima, nan_ids = _kernels()[0](
        inputs=[flat],
        template=dtype,
        grid=(tiles * THREADS, rows, 1),
        threadgroup=(THREADS, 1, 1),
        output_shapes=[(rows, tiles), (rows, tiles)],
        output_dtypes=[logits.dtype, mx.uint32],
    )
    (ids,) = _kernels()[1](
        inputs=[flat, lse.reshape(rows), maxima, nan_ids],
        template=[*dtype, ("NAN_RULE", int(nan_rule()))],
        grid=(THREADS, rows, 1),
        threadgroup=(THREADS, 1, 1),
        output_shapes=[(rows,)],
        output_dtypes=[mx.uint32],
    )
    return ids.reshape(logits.shape[:-1])


@cache
def _kernels() -> tuple[executors.Kernel, executors.Kernel]:
    header = metal_text("normalized_argmax")
    tiles = executors.metal_kernel(
        name="normalized_argmax_tiles",
        input_names=["logits"],
        output_names=["maxima", "nan_ids"],
        header=header,
        source=metal_text("normalized_argmax_tiles"),
    )
    finish = executors.metal_kernel(
        name="normalized_argmax_finish",
        input_names=["logits", "lse", "maxima", "nan_ids"],
        output_names=["out"],
        header=header,
        source=metal_text("normalized_argmax_finish"),
    )
    return tiles, finish


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
