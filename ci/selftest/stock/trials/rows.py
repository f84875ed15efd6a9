"""Kernels that take a row each: softmax, logsumexp, cross entropy, norms, rotary positions."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock import dispatch
from trials.trial import F32, FLOATS, NAMES, U32, Array, Trial, normal, on_cpu, rounding, wide

SIZES = (5, 33, 1000, 4096, 4097)
EXP = 2 * U32 * 2
"""expf is within a unit in the last place, and its argument a difference that is rounded once."""


def _kind(size: int) -> str:
    return "looped" if size > 4096 else "block"


def softmax(dtype: Any, size: int, precise: bool) -> Trial:
    x = normal(dtype, 3, size, scale=3)
    name = f"{_kind(size)}_softmax_{'precise_' if precise else ''}{NAMES[x.dtype]}"

    def bound() -> tuple[Array, Array]:
        values = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
        exact = values / values.sum(-1, keepdims=True)
        unit = U32 if precise or dtype == F32 else rounding(np.ones(1), dtype)[0]
        # Each exponential of x - max: the difference rounds by |x - max| u; the sum of n positive terms by n u.
        spread = np.abs(wide(x) - wide(x).max(-1, keepdims=True))
        relative = (spread + 4) * unit + (spread.max() + 4 + size) * unit
        # Values below the least normal number are flushed in f32 and kept in f16: an absolute error either way.
        return exact, exact * relative + 2 * rounding(exact, dtype)

    return Trial(
        "softmax.h", name, str(x.shape), f"softmax(precise={precise})",
        lambda library: dispatch.softmax(library, x, precise=precise),
        lambda: on_cpu(lambda a: mx.softmax(a, axis=-1, precise=precise or dtype == F32), x), bound,
        "roundings of x - max, of the exponentials and of n partial sums, in f32 or the dtype; the result's rounding",
    )  # fmt: skip


def logsumexp(dtype: Any, size: int) -> Trial:
    x = normal(dtype, 3, size, scale=3)

    def bound() -> tuple[Array, Array]:
        top = wide(x).max(-1, keepdims=True)
        total = np.exp(wide(x) - top).sum(-1, keepdims=True)
        exact = np.log(total) + top
        spread = np.abs(wide(x) - top).max()
        error = (spread + 4 + size) * U32 + 4 * U32 * (np.abs(np.log(total)) + np.abs(top) + 1)
        return exact, error + 2 * rounding(np.maximum(np.abs(exact), np.abs(top)), dtype) * (dtype != F32)

    return Trial(
        "logsumexp.h", f"{_kind(size)}_logsumexp_{NAMES[x.dtype]}", str(x.shape), "logsumexp",
        lambda library: dispatch.logsumexp(library, x),
        lambda: on_cpu(lambda a: mx.logsumexp(a, axis=-1, keepdims=True), x), bound,
        "roundings of x - max, of exponentials and of n partial sums in f32 weighed by the sum; log, sum, result",
    )  # fmt: skip


def _loss(a: Any, t: Any) -> Any:
    a = a.astype(mx.float32)
    return mx.logsumexp(a, axis=-1) - mx.take_along_axis(a, t[:, None], axis=-1)[:, 0]


def cross_entropy(dtype: Any, size: int) -> Trial:
    x, targets = normal(dtype, 4, size, scale=3), np.array([0, size - 1, 2, -1], np.int32)
    name = f"cross_entropy_{NAMES[x.dtype]}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros(4, np.float32)
        threads = min(1024, 32 * -(-size // 128))
        library.function(name)([x, targets, out, np.int32(size)], grid=4 * threads, threadgroup=threads)
        return out

    def bound() -> tuple[Array, Array]:
        top = wide(x).max(-1)
        total = np.exp(wide(x) - top[:, None]).sum(-1)
        picked = wide(x)[np.arange(4), targets]
        spread = np.abs(wide(x) - top[:, None]).max()
        error = (spread + 4 + size) * U32 + 8 * U32 * (np.log(total) + np.abs(top) + np.abs(picked) + 1)
        return np.log(total) + top - picked, error

    return Trial(
        "cross_entropy.h", name, str(x.shape), "logsumexp(x) - x[target]", run, lambda: on_cpu(_loss, x, targets),
        bound,
        "as logsumexp, and the roundings of two more sums in f32",
    )  # fmt: skip


def cross_entropy_vjp(dtype: Any, size: int) -> Trial:
    x, targets = normal(dtype, 4, size, scale=3), np.array([0, size - 1, 2, 1], np.int32)
    cotangents = normal(F32, 4, seed=2)
    name = f"cross_entropy_vjp_{NAMES[x.dtype]}"
    loss = np.asarray(on_cpu(_loss, x, targets), np.float32)

    def run(library: RawLibrary) -> Array:
        out = np.zeros_like(x)
        threads = min(1024, 32 * -(-size // 128))
        given = [x, targets, loss, cotangents, out, np.int32(size)]
        library.function(name)(given, grid=4 * threads, threadgroup=threads)
        return out

    def expected() -> Array:
        return on_cpu(lambda a, t, c: mx.vjp(lambda b: _loss(b, t), [a], [c])[1][0], x, targets, cotangents)

    def bound() -> tuple[Array, Array]:
        top = wide(x).max(-1, keepdims=True)
        weights = np.exp(wide(x) - top)
        weights /= weights.sum(-1, keepdims=True)
        exact = wide(cotangents)[:, None] * (weights - np.eye(size)[targets])
        error = (np.abs(wide(x)).max() * 4 + 8 + size) * U32 * np.abs(cotangents)[:, None] * (weights + 2 * U32)
        return exact, error + 4 * U32 * np.abs(wide(cotangents))[:, None] + 2 * rounding(exact, dtype)

    return Trial(
        "cross_entropy.h", name, str(x.shape), "vjp(logsumexp(x) - x[target])", run, expected, bound,
        "roundings of the exponent (x - x[target] - loss) and of the loss, in f32; the result's rounding",
    )  # fmt: skip


def rms_norm(dtype: Any, size: int) -> Trial:
    x, weight = normal(dtype, 3, size), normal(dtype, size)

    def bound() -> tuple[Array, Array]:
        exact = wide(x) * wide(weight) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-5)
        # n roundings of the sum of squares, halved by the root; root, quotient, two products.
        return exact, np.abs(exact) * (size / 2 + 6) * U32 + 3 * rounding(exact, dtype) * (dtype != F32)

    name = f"rms{'_looped' if size > 4096 else ''}{NAMES[x.dtype]}"
    return Trial(
        "rms_norm", name, str(x.shape), "fast.rms_norm", lambda library: dispatch.rms_norm(library, x, weight, 1e-5),
        lambda: on_cpu(lambda a, w: mx.fast.rms_norm(a, w, 1e-5), x, weight), bound,
        "n roundings of the sum of squares in f32, halved by the root; in f16 and bfloat those of two products",
        doors="twin",
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [
        softmax(t, s, precise) for t in FLOATS for s in SIZES for precise in ((False,) if t == F32 else (False, True))
    ]
    made += [logsumexp(t, s) for t in FLOATS for s in SIZES]
    made += [cross_entropy(t, s) for t in FLOATS for s in (33, 5000)]
    made += [cross_entropy_vjp(t, s) for t in FLOATS for s in (33, 5000)]
    made += [rms_norm(t, s) for t in FLOATS for s in SIZES]
    return made
