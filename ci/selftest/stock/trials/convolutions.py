"""Convolutions as implicit products of matrices, in two and three dimensions."""

from __future__ import annotations

import math
import struct
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock.dispatch import up
from trials.trial import F32, FLOATS, NAMES, U32, Array, Trial, in_f32, normal, on_cpu, rounding, wide

REASON = "as many roundings of f32 sums as the filter has weights a channel, and the result's rounding"


def parameters(
    x: Array, w: Array, out: tuple[int, ...], stride: int, pad: int, dilation: int = 1, input_dilation: int = 1
) -> bytes:
    """MLXConvParams of x [N, .., C] and w [O, .., C]."""
    n = x.ndim - 2
    numbers = [x.shape[0], x.shape[-1], w.shape[0], *x.shape[1:-1], *w.shape[1:-1], *out[1:-1]]
    numbers += [stride] * n + [pad] * n + [dilation] * n + [input_dilation] * n
    # The strides lie on a multiple of 8 bytes.
    numbers += [0] * (len(numbers) % 2)
    strides = [int(np.prod(shape[i + 1 :])) for shape in (x.shape, w.shape, out) for i in range(n + 2)]
    return struct.pack(f"{len(numbers)}i{len(strides)}qi?3x", *numbers, *strides, 1, False)


def exactly(x: Array, w: Array, out: tuple[int, ...], stride: int, pad: int, dilation: int, input_dilation: int) -> Any:
    """The convolution and the sum of its terms' sizes, in float64."""
    spatial = x.ndim - 2
    wider = np.zeros((x.shape[0], *((s - 1) * input_dilation + 1 for s in x.shape[1:-1]), x.shape[-1]))
    wider[(slice(None), *[slice(None, None, input_dilation)] * spatial)] = wide(x)
    wider = np.pad(wider, [(0, 0), *[(pad, pad)] * spatial, (0, 0)])
    total, size = np.zeros(out), np.zeros(out)
    for place in np.ndindex(*w.shape[1:-1]):
        at = tuple(
            slice(p * dilation, p * dilation + stride * (o - 1) + 1, stride)
            for p, o in zip(place, out[1:-1], strict=True)
        )
        patch, weights = wider[(slice(None), *at)], wide(w)[(slice(None), *place)]
        total += patch @ weights.T
        size += np.abs(patch) @ np.abs(weights).T
    return total, size


def convolution(
    dtype: Any, shape: tuple[int, ...], filters: tuple[int, ...], form: str,
    stride: int = 1, pad: int = 1, dilation: int = 1, input_dilation: int = 1,
) -> Trial:  # fmt: skip
    """x of `shape` [N, .., C], weights of `filters` [O, .., C]; `form`: "2d", "3d" or "2d_general"."""
    x, w = normal(dtype, *shape), normal(dtype, *filters, seed=1)
    spatial = len(shape) - 2
    sizes = [
        (s - 1) * input_dilation + 1 + 2 * pad - dilation * (k - 1) - 1
        for s, k in zip(shape[1:-1], filters[1:-1], strict=True)
    ]
    out_shape = (shape[0], *(s // stride + 1 for s in sizes), filters[0])
    channels, area = shape[-1], math.prod(filters[1:-1])
    rows, outputs = math.prod(out_shape[:-1]), filters[0]
    bm, bn, bk, wm, wn = (32, 8, 16, 4, 1) if outputs <= 16 and form != "2d_general" else (32, 32, 16, 2, 2)
    name = f"implicit_gemm_conv_{form}_{NAMES[x.dtype]}_bm{bm}_bn{bn}_bk{bk}_wm{wm}_wn{wn}"
    special = channels if channels <= 4 and form == "2d" else 0
    if form == "2d":
        name += f"_channel_{special or 'l'}_filter_{'l' if special else 's'}"
    elif form == "3d":
        name += "_filter_s"
    steps = up(channels, bk)
    iterations = area * steps
    if special:
        iterations = up(area * (channels if channels <= 2 else 4), bk)
    x_strides = [int(np.prod(shape[i + 1 :])) for i in range(spatial + 2)]
    jumps = [s * dilation for s in reversed(x_strides[1:-1])]
    spans = [(k - 1) * j for k, j in zip(reversed(filters[1:-1]), jumps, strict=True)]
    moved = [j - sum(spans[:i]) for i, j in enumerate(jumps)] + [bk - sum(spans)]

    def run(library: RawLibrary) -> Array:
        out = np.zeros(out_shape, dtype)
        given = parameters(x, w, out_shape, stride, pad, dilation, input_dilation)
        tiles, z = (up(outputs, bn), up(rows, bm)), 1
        buffers: list[Any] = [x, w, out, given]
        constants = {}
        if form == "2d_general":
            extra, tiles, z = general(out_shape)
            buffers += extra
            constants = {"align_C": channels % bk == 0}
        else:
            buffers.append(
                struct.pack(f"{len(moved) + 7}i", rows, outputs, area * channels, iterations, *moved, *tiles, 0)
            )
        library.function(name, constants)(buffers, threadgroups=(*tiles, z), threadgroup=(32, wn, wm))
        return out

    def general(out: tuple[int, ...]) -> tuple[list[Any], tuple[int, int], int]:
        weight_jump = math.lcm(input_dilation, dilation) // dilation
        out_jump = math.lcm(input_dilation, stride) // stride
        high, across = (up(s, out_jump) for s in out[1:-1])
        adjusted = shape[0] * high * across
        tiles = (up(outputs, bn), up(adjusted, bm))
        gemm = struct.pack("10i", rows, outputs, area * channels, steps, *moved, *tiles, 0)
        jump = struct.pack("8i", weight_jump, weight_jump, out_jump, out_jump, high, across, high * across, adjusted)
        bases = []
        for size in filters[1:-1]:
            found = b""
            for i in range(out_jump):
                at, base = i * stride - pad, 0
                while base < size and at % input_dilation:
                    base, at = base + 1, at + dilation
                found += struct.pack("2i", base, up(size - base, weight_jump))
            bases.append(found)
        return [gemm, jump, *bases], tiles, out_jump * out_jump

    def bound() -> tuple[Array, Array]:
        total, size = exactly(x, w, out_shape, stride, pad, dilation, input_dilation)
        return total, (area * channels + 1) * U32 * size + rounding(total, dtype) * (dtype != F32)

    def of(a: Any, b: Any) -> Any:
        return mx.conv_general(
            a, b, stride=stride, padding=pad, kernel_dilation=dilation, input_dilation=input_dilation
        )

    header = {"2d": "steel_conv", "3d": "steel_conv_3d", "2d_general": "steel_conv_general"}[form]
    return Trial(
        f"steel/conv/kernels/{header}.h", name, f"{shape} * {filters}", "conv_general", run,
        lambda: on_cpu(in_f32(of), x, w), bound, REASON,
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [convolution(t, (2, 9, 10, 32), (40, 3, 3, 32), "2d") for t in FLOATS]
    made += [convolution(F32, (1, 12, 11, c), (8, 3, 2, c), "2d", stride=2) for c in (1, 2, 3, 4, 16)]
    made += [convolution(F32, (1, 12, 11, 16), (24, 3, 3, 16), "2d", dilation=2)]
    made += [convolution(t, (1, 5, 6, 7, 16), (20, 3, 2, 3, 16), "3d") for t in FLOATS]
    made += [convolution(t, (2, 7, 8, 16), (24, 3, 3, 16), "2d_general", input_dilation=2) for t in FLOATS]
    made += [convolution(F32, (1, 7, 8, 20), (24, 4, 3, 20), "2d_general", stride=2, input_dilation=3)]
    return made
