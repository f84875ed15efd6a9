"""MLX's matrix product and attention as Apple compiled them: simdgroup matrices, function constants, structures."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.impl.executors import apple

VERSIONS = ("0.31.2", "0.32.2", "0.32.4")
NAMES = {np.dtype(np.float32): "float32", np.dtype(np.float16): "float16", np.dtype(ml_dtypes.bfloat16): "bfloat16"}


@pytest.fixture(params=VERSIONS)
def library(request: Any, stock: Any) -> apple.AppleLibrary:
    found: apple.AppleLibrary = stock(request.param)
    return found


def product(library: apple.AppleLibrary, a: Any, b: Any, turned: bool) -> Any:
    """a [M, K] @ b [K, N], or @ b [N, K].T if `turned`, by steel_gemm_fused in tiles of 32 x 32 x 16."""
    (m, k), n = a.shape, b.shape[0 if turned else 1]
    tiles_m, tiles_n = -(-m // 32), -(-n // 32)
    parameters = struct.pack(
        "8i3q3i4x", m, n, k, k, b.shape[1], n, tiles_n, tiles_m, m * k, n * k, m * n, 0, k // 16, 0
    )
    whole = {"align_M": m % 32 == 0, "align_N": n % 32 == 0, "align_K": k % 16 == 0}
    constants = {"has_batch": False, "use_out_source": False, "do_axpby": False, **whole}
    kind = NAMES[a.dtype]
    name = f"steel_gemm_fused_n{'t' if turned else 'n'}_{kind}_{kind}_bm32_bn32_bk16_wm2_wn2"
    out = np.zeros((m, n), a.dtype)
    kernel = library.function(name, constants)
    kernel({0: a, 1: b, 3: out, 4: parameters}, threadgroups=(tiles_n, tiles_m, 1), threadgroup=(32, 2, 2))
    return out


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize(("m", "n", "k"), [(32, 32, 16), (64, 96, 48), (33, 5, 50), (70, 100, 1)])
def test_matrix_products_of_small_integers(
    library: apple.AppleLibrary, dtype: Any, m: int, n: int, k: int, turned: bool
) -> None:
    rng = np.random.default_rng((m, n, k))
    a, b = rng.integers(-3, 4, (m, k)).astype(dtype), rng.integers(-3, 4, (k, n)).astype(dtype)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(dtype)
    given = np.ascontiguousarray(b.T) if turned else b
    assert np.array_equal(product(library, a, given, turned), exact)


# MLX gives a mask or asks for a causal one: a single query sees every key then.
@pytest.mark.parametrize(("causal", "masked"), [(False, False), (True, False), (False, True)])
def test_attention_of_one_query(library: apple.AppleLibrary, causal: bool, masked: bool) -> None:
    """sdpa_vector, 2 query heads a key head, within the rounding of f32 sums and of this machine's expf."""
    heads, length, width, scale = 4, 77, 64, 0.125
    rng = np.random.default_rng(7)
    q = rng.standard_normal((heads, width)).astype(np.float32)
    k, v = (rng.standard_normal((heads // 2, length, width)).astype(np.float32) for _ in range(2))
    mask = rng.random((heads, length)) < 0.7
    strides = [np.uint64(length * width), np.uint64(width)]
    out = np.zeros_like(q)
    constants = {"has_mask": masked, "query_transposed": False, "do_causal": causal, "bool_mask": masked}
    kernel = library.function("sdpa_vector_float_64_64", constants | {"float_mask": False, "has_sinks": False})
    buffers: dict[int, Any] = dict(enumerate([q, k, v, out, np.int32(2), np.int32(length), *strides, *strides]))
    buffers[10] = np.float32(scale)
    if masked:
        buffers |= {11: mask, 13: np.int32(1), 14: np.int32(length), 15: np.int32(length)}
    kernel(buffers, threadgroups=(heads, 1, 1), threadgroup=(1024, 1, 1))
    scores = scale * np.einsum("hd,hld->hl", q.astype(np.float64), np.repeat(k, 2, 0))
    weights = np.where(mask | (not masked), np.exp(scores), 0)
    exact = np.einsum("hl,hld->hd", weights / weights.sum(-1, keepdims=True), np.repeat(v, 2, 0))
    assert np.abs(out - exact).max() < 64 * 2.0**-24
