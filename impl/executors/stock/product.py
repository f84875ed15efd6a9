"""How MLX launches its products of matrices and vectors (`mlx/backend/metal/matmul.cpp`, `quantized.cpp`)."""

from typing import Any

import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock.dispatch import Array, name_of, up

_QUANTISED_NAMES = {"float32": "float", "float16": "float16_t", "bfloat16": "bfloat16_t"}


def matvec(library: RawLibrary, matrix: Array, vector: Array, *, transposed: bool = False, **launch: Any) -> Array:
    """matrix [N, K] @ vector [K] -> [N], in their dtype: gemv. `transposed`: matrix is [K, N], gemv_t."""
    inner, outer = matrix.shape if transposed else matrix.shape[::-1]
    out = np.zeros(outer, matrix.dtype)
    bm, bn, sm, sn, tm, tn = (_gemv_transposed if transposed else _gemv)(inner, outer)
    kernel = library.function(matvec_kernel(matrix, transposed=transposed))
    groups = up(outer, bn * sn * tn if transposed else bm * sm * tm)
    sizes = [np.int32(inner), np.int32(outer), np.int32(matrix.shape[1])]
    batch = [np.int32(1), np.array([1], np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64)]
    buffers = [matrix, vector, None, out, *sizes, None, None, *batch, None, None]
    kernel(buffers, threadgroups=(groups, 1, 1), threadgroup=(32, bn, bm), **launch)
    return out


def matvec_kernel(matrix: Array, *, transposed: bool = False) -> str:
    """MLX's name of the kernel that `matvec` launches."""
    inner, outer = matrix.shape if transposed else matrix.shape[::-1]
    bm, bn, sm, sn, tm, tn = (_gemv_transposed if transposed else _gemv)(inner, outer)
    head = f"gemv_{'t_' if transposed else ''}{name_of(matrix)}"
    return f"{head}_bm{bm}_bn{bn}_sm{sm}_sn{sn}_tm{tm}_tn{tn}_nc0_axpby0"


def _gemv(inner: int, outer: int) -> tuple[int, int, int, int, int, int]:
    bm, bn, sm, sn = (8 if outer >= 4096 else 4), 1, 1, 32
    if inner <= 64:
        bm, sm, sn = 1, 8, 4
    elif inner >= 16 * outer:
        bm, bn = 1, 8
    return bm, bn, sm, sn, 1 if outer < 4 else 4, 4


def _gemv_transposed(inner: int, outer: int) -> tuple[int, int, int, int, int, int]:
    sm, sn = (4, 8) if inner >= 8192 and outer >= 2048 else (8, 4)
    bn = 16 if outer >= 2048 else 4 if outer >= 512 else 2
    return 1, bn, sm, sn, 4, 1 if outer < 4 else 4


def quantized_matvec(
    library: RawLibrary,
    x: Array,
    weight: Array,
    scales: Array,
    biases: Array,
    *,
    group_size: int,
    bits: int,
    **launch: Any,
) -> Array:
    """x [M, K] @ dequantised(weight [N, K*bits/32] uint32).T -> [M, N]: affine_qmv, or affine_qmv_fast for whole tiles.

    scales, biases [N, K/group_size] of x's dtype, as mx.quantize gives them.
    """
    rows, inner = x.shape
    outer = weight.shape[0]
    out = np.zeros((rows, outer), x.dtype)
    fast = outer % 8 == 0 and inner % 512 == 0
    head = f"affine_qmv{'_fast' if fast else ''}_{_QUANTISED_NAMES[name_of(x)]}_gs_{group_size}_b_{bits}_batch_0"
    name = next((n for n in (head, f"{head}_pr_0_hgs_0_r_4") if n in library), head)
    kernel = library.function(name)
    # A single batch leaves the shapes and strides unbound.
    buffers = dict.fromkeys(a.location for a in kernel.buffers)
    buffers |= dict(enumerate([weight, scales, biases, x, out, np.int32(inner), np.int32(outer)]))
    kernel(buffers, threadgroups=(rows, up(outer, 8), 1), threadgroup=(32, 2, 1), **launch)
    return out
