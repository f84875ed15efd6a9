"""What Apple's compiler made of MLX's own kernels, run here and compared with NumPy.

Bits where arithmetic decides; a named bound where the C library's functions or an order of additions do. The libraries
come out of mlx-metal's wheels, fetched once into the cache.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.impl.executors.apple.kernel import AppleLibrary
from mlx_assay.impl.executors.stock import dispatch, product, reduction

VERSIONS = ("0.31.2", "0.32.2", "0.32.4")
BF16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = (np.dtype(np.float32), np.dtype(np.float16), BF16)
NAN, INF = np.nan, np.inf
MANTISSA = {np.dtype(np.float32): 23, np.dtype(np.float16): 10, BF16: 7}
LEAST_NORMAL = {np.dtype(np.float32): 2.0**-126, np.dtype(np.float16): 2.0**-14, BF16: 2.0**-126}
ROWS = (1, 5, 33, 1000, 4096, 4097, 9001)


@pytest.fixture(params=VERSIONS)
def any_version(request: Any, stock: Any) -> AppleLibrary:
    found: AppleLibrary = stock(request.param)
    return found


def drawn(dtype: Any, *shape: int, scale: float = 1.0) -> Any:
    return (np.random.default_rng(shape).standard_normal(shape) * scale).astype(dtype)


def wide(array: Any) -> Any:
    return np.asarray(array, np.float64)


def ulps(got: Any, exact: Any, scale: Any = 0) -> float:
    """The greatest distance to the exact values, in units of the last place of them or of a greater `scale`."""
    magnitude = np.maximum(np.abs(exact), scale)
    exponent = np.floor(np.log2(np.maximum(magnitude, LEAST_NORMAL[got.dtype])))
    return float(np.max(np.abs(wide(got) - exact) / 2.0 ** (exponent - MANTISSA[got.dtype])))


def bits(array: Any) -> Any:
    return array.view(np.uint32 if array.itemsize == 4 else np.uint16)


@pytest.mark.parametrize(
    ("version", "ids"), [("0.31.2", [0, 3, 1, 0, 0]), ("0.32.2", [0, 3, 1, 0, 0]), ("0.32.4", [1, 1, 2, 0, 0])]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_argmax_shows_the_change_of_the_nan_rule(stock: Any, version: str, ids: list[int], dtype: Any) -> None:
    """MLX 0.32.3 made the first NaN win (ml-explore/mlx#4291); before, NaN lost."""
    found = stock(version)
    rows = ([-INF, NAN, NAN, -INF], [3, NAN, 1, 5], [1, 2, NAN], [NAN] * 3, [-INF] * 3)
    assert [int(dispatch.argmax(found, np.array(row, dtype))) for row in rows] == ids


@pytest.mark.parametrize("schedule", ["in-order", "reverse"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_argmax_takes_the_first_of_the_greatest(any_version: AppleLibrary, dtype: Any, schedule: str) -> None:
    for size in ROWS:
        x = np.random.default_rng(size).integers(-20, 20, (2, 3, size)).astype(dtype)
        assert np.array_equal(dispatch.argmax(any_version, x, schedule=schedule), np.argmax(wide(x), -1))
        lowest = dispatch.argmax(any_version, x, smallest=True, schedule=schedule)
        assert np.array_equal(lowest, np.argmin(wide(x), -1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_logsumexp_softmax_and_rms_norm_are_within_bounds(any_version: AppleLibrary, dtype: Any) -> None:
    """Bounds in ulps: of rows of at most 9,001, with this machine's expf, logf and a square root."""
    for size in ROWS:
        x, weight = drawn(dtype, 3, size, scale=3), drawn(dtype, size)
        exact = wide(x)
        lse = np.log(np.exp(exact).sum(-1, keepdims=True))
        # It is a sum of the maximum and a logarithm, which may cancel.
        assert ulps(dispatch.logsumexp(any_version, x), lse, np.abs(exact.max(-1, keepdims=True))) <= 1
        softmax = ulps(dispatch.softmax(any_version, x, precise=True), np.exp(exact - lse))
        assert softmax <= (32 if dtype == np.float32 else 0.51)
        norm = exact * wide(weight) / np.sqrt((exact**2).mean(-1, keepdims=True) + 1e-5)
        assert ulps(dispatch.rms_norm(any_version, x, weight, 1e-5), norm) <= (4 if dtype == np.float32 else 1.51)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_of_rows(any_version: AppleLibrary, dtype: Any) -> None:
    for rows, size in ((1, 70), (7, 1), (5, 40), (40, 100), (3, 600), (33, 1500), (4, 5000)):
        # Every partial sum of these is a small integer, exact in bfloat.
        x = np.random.default_rng(size).integers(-1, 2, (rows, size)).astype(dtype)
        assert np.array_equal(reduction.reduce_rows(any_version, x, "max"), x.max(-1))
        assert np.array_equal(reduction.reduce_rows(any_version, x, "min"), x.min(-1))
        assert np.array_equal(wide(reduction.reduce_rows(any_version, x)), wide(x).sum(-1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("batch", "size", "stride"),
    [(1, 128, 256), (3, 128, 64), (2, 10, 70), (1, 2000, 8), (1, 300, 64), (2, 33000, 3), (2, 300, 100)],
)
def test_reductions_of_columns(any_version: AppleLibrary, dtype: Any, batch: int, size: int, stride: int) -> None:
    x = drawn(dtype, batch, size, stride)
    assert np.array_equal(reduction.reduce_columns(any_version, x, "max"), x.max(1))
    whole = np.random.default_rng(size).integers(-100, 100, x.shape).astype(np.int32)
    assert np.array_equal(reduction.reduce_columns(any_version, whole), whole.sum(1))
    sums = reduction.reduce_columns(any_version, x)
    bound = (size + 64) * 2.0 ** -(MANTISSA[dtype] + 1) * np.abs(wide(x)).sum(1)
    assert (np.abs(wide(sums) - wide(x).sum(1)) <= bound).all()


@pytest.mark.parametrize("columns", [32, 256, 1000])
def test_column_sums_have_the_documented_order(any_version: AppleLibrary, columns: int) -> None:
    """128 rows: lane y adds rows y, y+32, y+64, y+96 onto 0; the lanes meet in the ascending butterfly."""
    x = drawn(np.float32, 1, 128, columns)
    lanes = np.zeros((32, columns), np.float32)
    for first in range(0, 128, 32):
        lanes = x[0, first : first + 32] + lanes
    while len(lanes) > 1:
        lanes = lanes[0::2] + lanes[1::2]
    assert np.array_equal(bits(reduction.reduce_columns(any_version, x)), bits(lanes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("operation", ["Add", "Subtract", "Multiply", "Divide"])
def test_arithmetic_has_numpys_bits(any_version: AppleLibrary, dtype: Any, operation: str) -> None:
    """f32 inputs are normal and stay so; f16 and bfloat are computed in f32 and rounded once, as ml_dtypes does."""
    of = {"Add": np.add, "Subtract": np.subtract, "Multiply": np.multiply, "Divide": np.divide}[operation]
    for size in (1, 100, 70_001):
        a, b = drawn(dtype, size, 1), drawn(dtype, 1, size).reshape(size, 1)
        assert np.array_equal(bits(dispatch.binary(any_version, operation, a, b)), bits(of(a, b)))
        assert np.array_equal(bits(dispatch.binary(any_version, operation, a, b[:1])), bits(of(a, b[:1])))
        assert np.array_equal(bits(dispatch.binary(any_version, operation, a[:1], b)), bits(of(a[:1], b)))


@np.errstate(all="ignore")
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16])
def test_every_16_bit_value_through_unary_operations(any_version: AppleLibrary, dtype: Any) -> None:
    x = np.arange(65536, dtype=np.uint16).view(dtype)
    keeps = x if dtype != BF16 else np.where((x.view(np.uint16) & 0x7F80) == 0, bits(x) & 0x8000, bits(x)).view(dtype)
    root = np.sqrt(wide(keeps)).astype(dtype)
    expected = {"Negative": -x, "Abs": np.abs(x), "Square": keeps * keeps, "Sqrt": root}
    for operation, values in expected.items():
        got, nan = dispatch.unary(any_version, operation, x), np.isnan(wide(values))
        assert np.array_equal(np.isnan(wide(got)), nan), operation
        if operation == "Square" and dtype == BF16:
            flushed = wide(keeps) ** 2 < LEAST_NORMAL[dtype]
            assert not bits(got)[flushed].any()
            nan |= flushed
        assert np.array_equal(bits(got)[~nan], bits(values)[~nan]), operation


@pytest.mark.parametrize("dtype", DTYPES)
def test_transcendentals_are_close_and_marked(any_version: AppleLibrary, dtype: Any) -> None:
    x = np.linspace(-8, 8, 4001).astype(dtype)
    for operation, of in (("Exp", np.exp), ("Tanh", np.tanh), ("Sin", np.sin)):
        assert ulps(dispatch.unary(any_version, operation, x), of(wide(x))) <= (2 if dtype == np.float32 else 1.01)
    assert any_version.function("v_Expfloat32float32").opaque == ["air.exp.f32"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outer", "inner"), [(1, 100), (7, 64), (64, 33), (100, 1000), (10, 5000), (4096, 70)])
def test_matrix_vector_products(any_version: AppleLibrary, dtype: Any, outer: int, inner: int) -> None:
    rng = np.random.default_rng((outer, inner))
    matrix, vector = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((outer, inner), (inner,)))
    exact = (wide(matrix) @ wide(vector)).astype(dtype)
    assert np.array_equal(product.matvec(any_version, matrix, vector), exact)
    turned = np.ascontiguousarray(matrix.T)
    assert np.array_equal(product.matvec(any_version, turned, vector, transposed=True), exact)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits_each", [2, 4, 8])
@pytest.mark.parametrize(("outer", "inner"), [(16, 512), (20, 256)])
def test_quantized_products(any_version: AppleLibrary, dtype: Any, bits_each: int, outer: int, inner: int) -> None:
    """Codes, scales of 1 and whole biases keep every partial sum exact in f32."""
    rng = np.random.default_rng(bits_each)
    each = 32 // bits_each
    codes = rng.integers(0, 2**bits_each, (outer, inner // each, each)).astype(np.uint64)
    packed = (codes << (np.arange(each, dtype=np.uint64) * bits_each)).sum(-1).astype(np.uint32)
    scales = np.ones((outer, inner // 64), dtype)
    biases = rng.integers(-4, 4, scales.shape).astype(dtype)
    x = rng.integers(-2, 3, (2, inner)).astype(dtype)
    exact = wide(x) @ (wide(codes.reshape(outer, inner)) + np.repeat(wide(biases), 64, 1)).T
    got = product.quantized_matvec(any_version, x, packed, scales, biases, group_size=64, bits=bits_each)
    assert np.array_equal(got, exact.astype(dtype))


def test_a_sample_of_every_version_becomes_objects(any_version: AppleLibrary) -> None:
    names = [
        n
        for n in any_version.names[::600]
        if not n.startswith(("steel", "sdpa", "gemv_wide", "affine_gather", "implicit"))
    ]
    assert all(any_version.function(name).buffers for name in names)
    assert len(names) > 15
