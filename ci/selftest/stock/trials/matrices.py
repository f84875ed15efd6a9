"""Products of matrices and of a matrix and a vector: gemv and steel's gemm in every header."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.impl.executors.raw import RawLibrary
from mlx_assay.impl.executors.stock import product as vectors
from trials.trial import F16, F32, FLOATS, NAMES, U32, Array, Trial, in_f32, normal, on_cpu, rounding, whole, wide

REASON = "k roundings of f32 sums of products, in whatever order, then the result's rounding; on the CPU alike"


def summed(a: Array, b: Array, dtype: Any, more: int = 0) -> Callable[[], tuple[Array, Array]]:
    """The exact product of matrices, and k roundings in f32 (products of f16 and bfloat are exact)."""

    def bound() -> tuple[Array, Array]:
        exact, size = wide(a) @ wide(b), np.abs(wide(a)) @ np.abs(wide(b))
        return exact, (a.shape[-1] + 1 + more) * U32 * size + rounding(exact, dtype) * (dtype != F32)

    return bound


def parameters(
    m: int, n: int, k: int, tile: tuple[int, int, int], ta: bool, tb: bool, strides: tuple[int, int] | None = None
) -> bytes:
    """GEMMParams; `strides` of the batch, which a gather reads as those of its indices."""
    bm, bn, bk = tile
    return struct.pack(
        "8i3q3i4x", m, n, k, m if ta else k, k if tb else n, n, -(-n // bn), -(-m // bm),
        *(strides or (m * k, n * k)), m * n, 0, k // bk, 1,
    )  # fmt: skip


def operands(dtype: Any, m: int, n: int, k: int, ta: bool, tb: bool, *batch: int) -> tuple[Array, Array, Array, Array]:
    """Both matrices, and both as they lie in memory."""
    a, b = normal(dtype, *batch, m, k), normal(dtype, *batch, k, n, seed=1)
    turn = lambda x: np.ascontiguousarray(np.swapaxes(x, -1, -2))  # noqa: E731
    return a, b, turn(a) if ta else a, turn(b) if tb else b


def suffix(kind: str, dtype: Any, tile: tuple[int, ...], out: Any = None) -> str:
    names = f"{NAMES[np.dtype(dtype)]}_{NAMES[np.dtype(out or dtype)]}"
    return f"{kind}_{names}_bm{tile[0]}_bn{tile[1]}_bk{tile[2]}_wm{tile[3]}_wn{tile[4]}"


def kind_of(ta: bool, tb: bool) -> str:
    return f"{'t' if ta else 'n'}{'t' if tb else 'n'}"


def gemv(dtype: Any, outer: int, inner: int, transposed: bool) -> Trial:
    matrix, vector = normal(dtype, outer, inner), normal(dtype, inner, seed=1)
    given = np.ascontiguousarray(matrix.T) if transposed else matrix
    exact = summed(matrix, vector[:, None], dtype)
    return Trial(
        "gemv.h", vectors.matvec_kernel(given, transposed=transposed), f"({outer}, {inner})", "matrix @ vector",
        lambda library: vectors.matvec(library, given, vector, transposed=transposed),
        lambda: on_cpu(lambda a, b: a @ b, matrix, vector),
        lambda: (exact()[0][:, 0], exact()[1][:, 0]), REASON,
    )  # fmt: skip


def gemv_gather(dtype: Any, transposed: bool) -> Trial:
    matrices, rows = normal(dtype, 3, 40, 100), normal(dtype, 4, 100, seed=1)
    left, right = np.array([3, 0, 1, 1, 2], np.uint32), np.array([0, 2, 1, 2, 0], np.uint32)
    shape = "bm1_bn2_sm8_sn4_tm4_tn4" if transposed else "bm4_bn1_sm1_sn32_tm4_tn4"
    name = f"gemv_{'t_' if transposed else ''}gather_{NAMES[matrices.dtype]}_{shape}"
    given = np.ascontiguousarray(matrices.transpose(0, 2, 1)) if transposed else matrices

    def run(library: RawLibrary) -> Array:
        out = np.zeros((5, 40), dtype)
        one = lambda *n: np.array(n, np.int64)  # noqa: E731
        batch = [np.int32(1), np.array([5], np.int32), one(1, 1)]
        per_vector = [np.int32(1), np.array([4], np.int32), one(100)]
        per_matrix = [np.int32(1), np.array([3], np.int32), one(4000)]
        buffers = dict(
            enumerate([given, rows, None, out, np.int32(100), np.int32(40), np.int32(40 if transposed else 100)])
        )
        buffers |= {7: np.float32(1), 8: np.float32(0)}
        buffers |= dict(enumerate([*batch, *per_vector, *per_matrix, left, right], 9))
        groups, threads = ((-(-40 // 32), 1, 5), (32, 2, 1)) if transposed else ((-(-40 // 16), 1, 5), (32, 1, 4))
        library.function(name)(buffers, threadgroups=groups, threadgroup=threads)
        return out

    def expected() -> Array:
        return on_cpu(
            in_f32(lambda v, m, i, j: mx.gather_mm(v[:, None], mx.swapaxes(m, -1, -2), i, j)[:, 0]),
            rows,
            matrices,
            left,
            right,
        )

    exact = summed(rows[left][:, None], matrices[right].transpose(0, 2, 1), dtype)
    return Trial(
        "gemv.h", name, "(3, 40, 100)", "gather_mm", run, expected, lambda: (exact()[0][:, 0], exact()[1][:, 0]), REASON
    )


def gemv_masked(transposed: bool) -> Trial:
    matrix, vector = normal(F32, 64, 96), normal(F32, 96, seed=1)
    masks = [whole(bool, 0, 2, 2, 1), whole(bool, 0, 2, 2, 3, seed=1), whole(bool, 0, 2, 3, 1, seed=2)]
    shape = "bm1_bn2_sm8_sn4_tm4_tn4" if transposed else "bm2_bn1_sm4_sn8_tm4_tn4"
    name = f"gemv_{'t_' if transposed else ''}outmask_bool__opmask_bool__float32_{shape}_nc0"
    given = np.ascontiguousarray(matrix.T) if transposed else matrix
    mat_mask = np.ascontiguousarray(masks[1].T) if transposed else masks[1]

    def run(library: RawLibrary) -> Array:
        out = np.zeros(64, np.float32)
        batch = [np.int32(1), np.array([1], np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64)]
        buffers: dict[int, Any] = {0: given, 1: vector, 3: out, 4: np.int32(96), 5: np.int32(64)}
        buffers |= {6: np.int32(given.shape[1]), **dict(enumerate(batch, 9)), 20: masks[0], 21: mat_mask, 22: masks[2]}
        mat_strides = (1, 2) if transposed else (1, 3)
        buffers |= {23: np.array([1, 1, *mat_strides, 1, 1], np.int32), 24: np.zeros(3, np.int64)}
        groups, threads = ((-(-64 // 32), 1, 1), (32, 2, 1)) if transposed else ((-(-64 // 32), 1, 1), (32, 1, 2))
        library.function(name)(buffers, threadgroups=groups, threadgroup=threads)
        return out

    spread = lambda m: np.kron(m, np.ones((32, 1 if m.shape[1] == 1 else 32)))  # noqa: E731

    def bound() -> tuple[Array, Array]:
        kept, scaled = (matrix * spread(masks[1])), vector[:, None] * spread(masks[2])
        exact, error = summed(kept.astype(F32), scaled.astype(F32), F32)()
        return (exact * spread(masks[0]))[:, 0], error[:, 0]

    def expected() -> Array:
        wider = np.zeros((96, 32), np.float32)
        wider[:, 0] = vector
        return on_cpu(
            lambda a, b, *m: mx.block_masked_mm(a, b, 32, *m)[:, 0], matrix, wider, *masks
        )  # fmt: skip

    return Trial("gemv_masked.h", name, "(64, 96)", "block_masked_mm", run, expected, bound, REASON)


FUSED = (32, 32, 16, 2, 2)


def fused(
    dtype: Any, m: int, n: int, k: int, ta: bool, tb: bool, tile: tuple[int, ...] = FUSED, add: bool = False
) -> Trial:
    a, b, in_a, in_b = operands(dtype, m, n, k, ta, tb)
    c = normal(dtype, m, n, seed=2)
    name = f"steel_gemm_fused_{suffix(kind_of(ta, tb), dtype, tile)}"
    bm, bn, bk, wm, wn = tile

    def run(library: RawLibrary) -> Array:
        out = np.zeros((m, n), dtype)
        constants = {"has_batch": False, "use_out_source": add, "do_axpby": add}
        constants |= {"align_M": m % bm == 0, "align_N": n % bn == 0, "align_K": k % bk == 0}
        buffers: dict[int, Any] = {0: in_a, 1: in_b, 3: out, 4: parameters(m, n, k, (bm, bn, bk), ta, tb)}
        if add:
            buffers |= {2: c, 5: struct.pack("2iq2f", n, 1, m * n, 0.5, 2.0)}
        groups = (-(-n // bn), -(-m // bm), 1)
        library.function(name, constants)(buffers, threadgroups=groups, threadgroup=(32, wn, wm))
        return out

    def bound() -> tuple[Array, Array]:
        exact, error = summed(a, b, dtype, more=2)()
        if not add:
            return exact, error
        total = 0.5 * exact + 2 * wide(c)
        return total, error + 4 * U32 * np.abs(2 * wide(c)) + 3 * rounding(np.abs(exact) + 2 * np.abs(wide(c)), dtype)

    of = (lambda x, y, z: mx.addmm(z, x, y, alpha=0.5, beta=2.0)) if add else (lambda x, y, z: x @ y)
    return Trial(
        "steel/gemm/kernels/steel_gemm_fused.h", name, f"({m}, {k}) @ ({k}, {n})", "addmm" if add else "a @ b", run,
        lambda: on_cpu(of, a, b, c), bound, REASON,
    )  # fmt: skip


def split(dtype: Any, m: int, n: int, k: int, parts: int) -> Trial:
    a, b, in_a, in_b = operands(dtype, m, n, k, False, False)
    tile = (16, 16, 16, 2, 2)
    size = -(-(k // 16) // parts) * 16
    aligned = f"_MN_{'t' if m % 16 == n % 16 == 0 else 'n'}aligned_K_{'t' if k % 16 == 0 else 'n'}aligned"
    name = f"steel_gemm_splitk_{suffix('nn', dtype, tile, F32)}{aligned}"

    def run(library: RawLibrary) -> Array:
        partial, out = np.zeros((parts, m, n), np.float32), np.zeros((m, n), dtype)
        tiles = (-(-n // 16), -(-m // 16))
        given = struct.pack("13i", m, n, k, k, n, n, *tiles, parts, m * n, size, 0, size // 16)
        library.function(name)([in_a, in_b, partial, given], threadgroups=(*tiles, parts), threadgroup=(32, 2, 2))
        accumulate = library.function(f"steel_gemm_splitk_accum_{NAMES[a.dtype]}_float32")
        accumulate([partial, out, np.int32(parts), np.int32(m * n), np.int32(n)], grid=(n, m, 1), threadgroup=(n, 1, 1))
        return out

    return Trial(
        "steel/gemm/kernels/steel_gemm_splitk.h", name, f"({m}, {k}) @ ({k}, {n}) in {parts}", "a @ b", run,
        lambda: on_cpu(lambda x, y: x @ y, a, b), summed(a, b, dtype, more=parts), REASON,
        also=(f"steel_gemm_splitk_accum_{NAMES[a.dtype]}_float32",),
    )  # fmt: skip


def split_axpby(dtype: Any) -> Trial:
    partial, c = normal(F32, 3, 20, 30), normal(dtype, 20, 30, seed=1)
    name = f"steel_gemm_splitk_accum_{NAMES[c.dtype]}_float32_axbpy"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((20, 30), dtype)
        given = [partial, out, np.int32(3), np.int32(600), np.int32(30), c, np.int32(30), np.int32(1)]
        library.function(name)([*given, np.float32(0.5), np.float32(2)], grid=(30, 20, 1), threadgroup=(30, 1, 1))
        return out

    def bound() -> tuple[Array, Array]:
        exact = 0.5 * wide(partial).sum(0) + 2 * wide(c)
        size = np.abs(wide(partial)).sum(0) + 2 * np.abs(wide(c))
        return exact, 8 * U32 * size + 3 * rounding(size, dtype) * (dtype != F32)

    def expected() -> Array:
        return on_cpu(lambda p, z: (0.5 * p.sum(0) + 2 * z.astype(mx.float32)).astype(z.dtype), partial, c)

    return Trial(
        "steel/gemm/kernels/steel_gemm_splitk.h", name, "(3, 20, 30)", "alpha sum(parts) + beta c", run, expected,
        bound,
        "a rounding each of 3 sums, 2 products, a sum, and of each of them in the dtype",
    )  # fmt: skip


def masked(dtype: Any, m: int, n: int, k: int, outer: bool, inner: bool) -> Trial:
    a, b, *_ = operands(dtype, m, n, k, False, False)
    tiles = (-(-m // 32), -(-n // 32), -(-k // 32))
    masks = [
        whole(bool, 0, 2, *s, seed=i)
        for i, s in enumerate(((tiles[0], tiles[1]), (tiles[0], tiles[2]), (tiles[2], tiles[1])))
    ]
    aligned = f"_MN_{'t' if m % 32 == n % 32 == 0 else 'n'}aligned_K_{'t' if k % 16 == 0 else 'n'}aligned"
    words = (f"outmask_{'bool_' if outer else 'nomask'}", f"opmask_{'bool_' if inner else 'nomask'}")
    name = f"steel_gemm_block_{words[0]}_{words[1]}_{suffix('nn', dtype, FUSED)}{aligned}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((m, n), dtype)
        buffers: dict[int, Any] = {0: a, 1: b, 3: out, 4: parameters(m, n, k, (32, 32, 16), False, False)}
        buffers |= {6: np.array([1], np.int32), 7: np.zeros(5, np.int64)}
        given = [masks[0]] * outer + masks[1:] * inner
        buffers |= {10: masks[0] if outer else None, 11: masks[1] if inner else None, 12: masks[2] if inner else None}
        buffers[13] = np.array([s for mask in given for s in (1, mask.shape[1])], np.int32)
        library.function(name)(buffers, threadgroups=(tiles[1], tiles[0], 1), threadgroup=(32, 2, 2))
        return out

    spread = lambda mask, *s: np.kron(mask, np.ones((32, 32)))[: s[0], : s[1]]  # noqa: E731

    def bound() -> tuple[Array, Array]:
        left = wide(a) * (spread(masks[1], m, k) if inner else 1)
        right = wide(b) * (spread(masks[2], k, n) if inner else 1)
        exact, size = left @ right, np.abs(left) @ np.abs(right)
        kept = spread(masks[0], m, n) if outer else 1
        return exact * kept, ((k + 1) * U32 * size + rounding(exact, dtype) * (dtype != F32)) * kept

    def expected() -> Array:
        if outer and inner:
            return on_cpu(in_f32(lambda x, y, *m: mx.block_masked_mm(x, y, 32, *m)), a, b, *masks)
        if outer:
            return on_cpu(in_f32(lambda x, y, o: mx.block_masked_mm(x, y, 32, o)), a, b, masks[0])
        return on_cpu(in_f32(lambda x, y, *m: mx.block_masked_mm(x, y, 32, None, *m)), a, b, *masks[1:])

    return Trial(
        "steel/gemm/kernels/steel_gemm_masked.h", name, f"({m}, {k}) @ ({k}, {n})", "block_masked_mm", run, expected,
        bound, REASON,
    )  # fmt: skip


def gathered(dtype: Any, m: int, n: int, k: int, tb: bool) -> Trial:
    a, b = normal(dtype, 4, m, k), normal(dtype, 3, k, n, seed=1)
    in_b = np.ascontiguousarray(b.transpose(0, 2, 1)) if tb else b
    left, right = np.array([3, 0, 1, 1, 2], np.uint32), np.array([0, 2, 1, 2, 0], np.uint32)
    tile = FUSED
    name = f"steel_gather_mm_{suffix(kind_of(False, tb), dtype, tile)}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((5, m, n), dtype)
        constants = {"has_batch": False, "align_M": m % 32 == 0, "align_N": n % 32 == 0, "align_K": k % 16 == 0}
        one = lambda *v: np.array(v, np.int64)  # noqa: E731
        buffers = [a, in_b, left, right, out, parameters(m, n, k, (32, 32, 16), False, tb, (1, 1))]
        buffers += [np.array([5], np.int32), one(1), one(1), np.int32(1), np.array([4], np.int32), one(m * k)]
        buffers += [np.int32(1), np.array([3], np.int32), one(k * n)]
        groups = (-(-n // 32), -(-m // 32), 5)
        library.function(name, constants)(buffers, threadgroups=groups, threadgroup=(32, 2, 2))
        return out

    return Trial(
        "steel/gemm/kernels/steel_gemm_gather.h", name, f"(4, {m}, {k}) @ (3, {k}, {n})", "gather_mm", run,
        lambda: on_cpu(in_f32(mx.gather_mm), a, b, left, right),
        summed(a[left], b[right], dtype), REASON,
    )  # fmt: skip


def gathered_rows(dtype: Any) -> Trial:
    """Rows sorted by the matrix that each is multiplied by: gather_mm_rhs takes where each group begins."""
    m, n, k = 70, 80, 48
    a, b = normal(dtype, m, k), normal(dtype, 4, k, n, seed=1)
    right = np.sort(whole("uint32", 0, 4, m))
    offsets = np.searchsorted(right, np.arange(4)).astype(np.int32)
    tile = (16, 64, 16, 1, 2)
    name = f"steel_gather_mm_rhs_{suffix('nn', dtype, tile)}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((m, n), dtype)
        constants = {"align_N": n % 64 == 0, "align_K": True, "align_M": m % 16 == 0, "has_batch": False}
        used = {c: v for c, v in constants.items() if c in ("align_N", "align_K")}
        given = [a, b, offsets, out, parameters(m, n, k, (16, 64, 16), False, False), np.int32(4)]
        groups = (-(-n // 64), -(-m // 16) + 4, 1)
        library.function(name, used)(given, threadgroups=groups, threadgroup=(32, 2, 1))
        return out

    def expected() -> Array:
        return on_cpu(
            in_f32(lambda x, y, j: mx.gather_mm(x[:, None], y, rhs_indices=j, sorted_indices=True)[:, 0]), a, b, right
        )

    exact = summed(a[:, None], b[right], dtype)
    return Trial(
        "steel/gemm/kernels/steel_gemm_gather.h", name, f"({m}, {k}) @ (4, {k}, {n})", "gather_mm", run, expected,
        lambda: (exact()[0][:, 0], exact()[1][:, 0]), REASON,
    )  # fmt: skip


def segmented(dtype: Any, m: int, n: int, k: int) -> Trial:
    a, b, *_ = operands(dtype, m, n, k, False, False)
    segments = np.array([[0, 20], [20, 64], [64, k]], np.uint32)
    name = f"steel_segmented_mm_{suffix('nn', dtype, FUSED)}"

    def run(library: RawLibrary) -> Array:
        out = np.zeros((3, m, n), dtype)
        constants = {"segments_contiguous": True, "align_M": m % 32 == 0, "align_N": n % 32 == 0}
        given = [a, b, segments, out, parameters(m, n, k, (32, 32, 16), False, False)]
        groups = (-(-n // 32), -(-m // 32), 3)
        library.function(name, constants)(given, threadgroups=groups, threadgroup=(32, 2, 2))
        return out

    def bound() -> tuple[Array, Array]:
        parts = [summed(a[:, i:j], b[i:j], dtype)() for i, j in segments]
        return np.stack([p[0] for p in parts]), np.stack([p[1] for p in parts])

    return Trial(
        "steel/gemm/kernels/steel_gemm_segmented.h", name, f"({m}, {k}) @ ({k}, {n})", "segmented_mm", run,
        lambda: on_cpu(in_f32(mx.segmented_mm), a, b, segments), bound, REASON,
    )  # fmt: skip


def trials() -> list[Trial]:
    made = [
        gemv(t, o, i, turned)
        for t in FLOATS
        for o, i in ((7, 64), (100, 1000), (33, 33), (2, 4097))
        for turned in (False, True)
    ]
    made += [gemv_gather(t, turned) for t in (F32, F16) for turned in (False, True)]
    made += [gemv_masked(turned) for turned in (False, True)]
    made += [fused(t, 64, 96, 48, ta, tb) for t in FLOATS for ta in (False, True) for tb in (False, True)]
    made += [fused(t, 33, 5, 50, False, True) for t in FLOATS] + [
        fused(t, 40, 70, 33, False, False, add=True) for t in FLOATS
    ]
    made += [
        fused(F32, 70, 40, 65, False, False, tile)
        for tile in ((64, 64, 16, 2, 2), (64, 32, 32, 2, 2), (64, 32, 8, 4, 1))
    ]
    made += [split(t, 20, 30, 200, 3) for t in FLOATS] + [split(F32, 32, 16, 256, 4)] + [split_axpby(t) for t in FLOATS]
    made += [masked(t, 70, 64, 64, o, i) for t in (F32, F16) for o, i in ((True, True), (True, False), (False, True))]
    made += [gathered(t, 33, 40, 50, tb) for t in FLOATS for tb in (False, True)] + [gathered_rows(t) for t in FLOATS]
    made += [segmented(t, 40, 32, 100) for t in FLOATS]
    return made
