"""The argmax oracles: ties, rounding, both NaN rules, every shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.oracles import numpy_reference, stock_mlx, torch_reference

BFLOAT16, FLOAT16, FLOAT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
NAN, INFINITY = np.nan, np.inf
WITH_A_RULE = (numpy_reference, torch_reference)

named = pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16, FLOAT32], ids=str)
ruled = pytest.mark.parametrize("oracle", WITH_A_RULE, ids=lambda oracle: str(oracle.NAME))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


ROWS: list[tuple[list[float], int, int]] = [
    ([NAN, 1, 2], 0, 0),
    ([NAN, NAN, 1], 0, 0),
    ([1, NAN, 2], 1, 2),
    ([1, NAN, 0], 1, 0),
    ([NAN, NAN, NAN], 0, 0),
    ([-INFINITY, NAN, -INFINITY], 1, 0),
    ([NAN, -INFINITY, -INFINITY, -5], 0, 0),
    ([-INFINITY, -INFINITY], 0, 0),
    ([NAN, INFINITY], 0, 0),
    ([INFINITY, NAN], 1, 0),
    ([-INFINITY, NAN, NAN], 1, 0),
    ([NAN] * 9 + [3], 0, 0),
    ([1] * 20 + [NAN, 2], 20, 21),
    ([NAN] * 17 + [-INFINITY] * 3, 0, 0),
    ([-INFINITY] * 17 + [NAN] * 3, 17, 0),
]
"""A row, its winner where the first NaN wins, and where NaN is skipped: as MLX 0.32.4 and 0.32.2 answer on the CPU."""


@ruled
@named
@pytest.mark.parametrize(("row", "first", "skipped"), ROWS)
def test_nan_rules(oracle: Any, dtype: np.dtype[Any], row: list[float], first: int, skipped: int) -> None:
    logits, lse = np.array([row, row], dtype), np.zeros((2, 1), dtype)
    rules: tuple[tuple[Literal["first", "skipped"], int], ...] = (("first", first), ("skipped", skipped))
    for rule, want in rules:
        assert oracle.argmax_given(logits, lse, rule).tolist() == [want, want]


@ruled
@pytest.mark.parametrize(
    ("logits", "lse", "first", "skipped"),
    [
        ([0, INFINITY, INFINITY, 1], INFINITY, 1, 0),
        ([-INFINITY, INFINITY, 0, 0], INFINITY, 1, 0),
        ([INFINITY, 0, 0], INFINITY, 0, 0),
        ([1, INFINITY, 2], INFINITY, 1, 0),
        ([NAN, 1, 2], NAN, 0, 0),
        ([-INFINITY] * 4, -INFINITY, 0, 0),
        ([INFINITY, INFINITY], INFINITY, 0, 0),
    ],
)
def test_rows_with_infinities(oracle: Any, logits: list[float], lse: float, first: int, skipped: int) -> None:
    for dtype in (BFLOAT16, FLOAT16, FLOAT32):
        given, bound = np.array(logits, dtype), np.array([lse], dtype)
        assert int(oracle.argmax_given(given, bound, "first")) == first
        assert int(oracle.argmax_given(given, bound, "skipped")) == skipped


@named
def test_oracles_agree_on_every_kind_of_row(dtype: np.dtype[Any]) -> None:
    """Encodings drawn evenly, a third of them NaN or infinite in the narrow dtypes' top binades, and near ties."""
    words = np.random.Philox(key=7).random_raw(8 * 40 * 33)
    even = words.astype(np.dtype(f"u{dtype.itemsize}")).view(dtype).reshape(-1, 33)
    near = (words % 5).astype(np.float32).astype(dtype).reshape(-1, 33) * dtype.type(0.01)
    for logits in (even, near):
        for bound in (0.25, 3.7, NAN, INFINITY, -INFINITY):
            lse = np.full((len(logits), 1), bound, dtype)
            want = numpy_reference.argmax_given(logits, lse)
            assert np.array_equal(torch_reference.argmax_given(logits, lse), want)
            assert np.array_equal(stock_mlx.argmax_given(logits, lse), want)
            skipped = numpy_reference.argmax_given(logits, lse, "skipped")
            assert np.array_equal(torch_reference.argmax_given(logits, lse, "skipped"), skipped)


@named
def test_ties_across_every_boundary(dtype: np.dtype[Any]) -> None:
    for low, high in ((3, 4), (31, 32), (127, 128), (255, 256), (1023, 1024), (4095, 4096), (5, 5000)):
        logits = np.zeros(5001, dtype)
        logits[[low, high]] = 3
        lse = np.ones(1, dtype)
        for oracle in (stock_mlx, *WITH_A_RULE):
            assert int(oracle.argmax_given(logits, lse)) == low
        assert int(stock_mlx.normalized_argmax(logits)) == low


def test_scores_are_rounded_to_the_dtype() -> None:
    x = np.array([30.125, 30.25, 30.0], BFLOAT16)
    lse = np.array([1000.0], BFLOAT16)
    assert numpy_reference.scores(x, lse).astype(np.float32).tolist() == [-968.0, -968.0, -968.0]
    for oracle in (stock_mlx, *WITH_A_RULE):
        assert int(oracle.argmax_given(x, lse)) == 0
    assert int(np.argmax(x.astype(np.float32))) == 1


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint8"])
def test_integer_logits_give_float32_scores(dtype: str) -> None:
    logits = np.array([[3, 7, 7, 1], [0, 0, 0, 0], [100, 1, 2, 101]]).astype(dtype)
    lse = stock_mlx.logsumexp(logits)
    assert lse.dtype == FLOAT32
    want = [1, 0, 3]
    assert stock_mlx.normalized_argmax(logits).tolist() == want
    for oracle in WITH_A_RULE:
        assert oracle.argmax_given(logits, lse).tolist() == want


@named
def test_shapes(dtype: np.dtype[Any]) -> None:
    for shape in ((7,), (1, 7), (3, 7), (2, 3, 7), (2, 1, 3, 7), (3, 1)):
        logits = (np.arange(np.prod(shape)) * 5 % 7).reshape(shape).astype(dtype)
        lse = stock_mlx.logsumexp(logits)
        assert lse.shape == (*shape[:-1], 1)
        for oracle in (stock_mlx, *WITH_A_RULE):
            got = oracle.argmax_given(logits, lse)
            assert got.shape == shape[:-1]
            assert got.dtype == np.uint32
        assert stock_mlx.normalized_argmax(logits).shape == shape[:-1]


def test_size_zero_raises_as_in_mlx() -> None:
    for shape in ((0,), (0, 5), (3, 0)):
        with pytest.raises(ValueError, match="logsumexp"):
            stock_mlx.logsumexp(np.zeros(shape, FLOAT32))
