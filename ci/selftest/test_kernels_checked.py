"""The kernels of selection and masking under the checker: nothing is found in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from mlx_assay.impl import apply_token_bitmask, argmax_given, executors, normalized_argmax
from mlx_assay.impl.executors.checker import checked
from mlx_assay.impl.executors.observation import Launch, observed
from mlx_assay.impl.executors.signature import Definition

DTYPES = [mx.float32, mx.float16, mx.bfloat16]


@pytest.fixture
def launched() -> Iterator[set[str]]:
    """The kernels that a test launches; every one of them is checked, and nothing may be found."""
    names: set[str] = set()

    def note(definition: Definition, launch: Launch) -> list[mx.array]:
        names.add(definition.name)
        return launch.run()

    with executors.use("host"), checked() as findings, observed(note):
        yield names
    assert findings == []


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
# One tile that is not full, several with a rest, and rows that are not contiguous.
@pytest.mark.parametrize(("rows", "vocabulary", "step"), [(1, 33, 1), (3, 2 * 1024 + 5, 1), (2, 1030, 2)])
def test_argmax_is_clean(launched: set[str], dtype: Any, rows: int, vocabulary: int, step: int) -> None:
    logits = mx.random.normal((rows, vocabulary * step), key=mx.random.key(rows)).astype(dtype)[:, ::step]
    mx.eval(normalized_argmax(logits))
    mx.eval(argmax_given(logits, mx.zeros((rows, 1), dtype)))
    assert len(launched) == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("special", [float("nan"), float("inf"), float("-inf")])
def test_argmax_of_special_rows_is_clean(launched: set[str], dtype: Any, special: float) -> None:
    rows = mx.array([[1.0] * 40, [special] * 40, [special, *[2.0] * 39]])
    mx.eval(normalized_argmax(rows.astype(dtype)))
    assert len(launched) == 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
# Whole words, a part of the last word, and a mask that is too short.
@pytest.mark.parametrize(("rows", "vocabulary", "words"), [(1, 64, 2), (3, 515, 17), (2, 100, 2)])
def test_bitmask_is_clean(launched: set[str], dtype: Any, rows: int, vocabulary: int, words: int) -> None:
    bits = np.random.default_rng(words).integers(-(2**31), 2**31, words).astype(np.int32)
    mx.eval(apply_token_bitmask(mx.ones((rows, vocabulary), dtype), bits))
    assert len(launched) == 1
