"""A view holds its values bit for bit, on NumPy and on MLX, and everything that it skips is poison."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.encoding import bits_of
from mlx_assay.fixtures.tensor import DTYPES, viewed
from mlx_assay.fixtures.views import BROADCAST, VIEWS


def values_for(name: str, dtype: str, rows: int, columns: int) -> np.ndarray:
    values = Draw(rows * columns).bits(DTYPES[dtype], (rows, columns)).copy()
    if name == "broadcast-rows":
        values[:] = values[:1]
    if name == "broadcast-columns":
        values[:] = values[:, :1]
    return values


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (3, 4), (5, 33)])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_equals_its_values(name: str, shape: tuple[int, int]) -> None:
    for dtype in ("bfloat16", "float16", "float32", "int32"):
        values = values_for(name, dtype, *shape)
        array = VIEWS[name](values).array
        assert array.ndim == VIEWS[name].rank
        assert array.shape == (shape if array.ndim == 2 else (shape[0], 1, shape[1]))
        assert array.tobytes() == values.tobytes()


@pytest.mark.parametrize("name", VIEWS)
def test_mlx_sees_the_same_bits(name: str) -> None:
    import mlx.core as mx

    values = values_for(name, "float32", 3, 8)
    tensor = VIEWS[name](values)
    seen = np.array(viewed(mx.array(bits_of(tensor.base)), tensor.steps, mx))
    assert seen.tobytes() == values.tobytes()


@pytest.mark.parametrize("name", VIEWS)
def test_skipped_elements_are_poison(name: str) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    if name in BROADCAST:
        values[:] = 7
    for poison, expected in ((None, np.inf), (-5.0, -5.0)):
        base = VIEWS[name](values, poison).base
        assert (base == expected).sum() == max(0, base.size - values.size)
    integers = VIEWS[name](values.astype(np.int32)).base
    assert (integers == np.iinfo(np.int32).max).sum() == max(0, integers.size - values.size)


def test_every_view_but_one_is_no_plain_layout() -> None:
    values = np.full((3, 4), 2.0, dtype=np.float16)
    assert [name for name in VIEWS if not VIEWS[name](values).steps] == ["contiguous"]


@pytest.mark.parametrize("name", BROADCAST)
def test_values_that_do_not_repeat_cannot_be_broadcast(name: str) -> None:
    with pytest.raises(ValueError, match="does not repeat"):
        VIEWS[name](np.arange(12, dtype=np.float32).reshape(3, 4))


def test_values_of_another_rank_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[rows, columns\].*\(3,\)"):
        VIEWS["contiguous"](np.zeros(3, dtype=np.float32))
