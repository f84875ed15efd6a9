"""Integer edges are what they are called, and strategies of every dtype reach all of its edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from mlx_assay.fixtures import strategies
from mlx_assay.fixtures.encoding import FORMATS, bits_of, from_ordinals, is_denormal, is_nan, ordinals, word
from mlx_assay.fixtures.integers import EDGES, INTEGERS, curated, integer_edges
from mlx_assay.fixtures.tensor import DTYPES

REACHED = settings(max_examples=3000, deadline=None, derandomize=True, database=None, phases=[Phase.generate])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_edges_hold_the_ends_and_each_stands_once(dtype: str) -> None:
    info, values = np.iinfo(DTYPES[dtype]), integer_edges(dtype).tolist()
    assert {0, 1, 2, int(info.min), int(info.max)} <= set(values)
    assert len(set(values)) == len(values)
    if info.min < 0:
        assert {-1, -2, int(info.min) + 1} <= set(values)


def test_every_edge_has_a_meaning_of_its_own() -> None:
    assert len({edge.meaning for edge in EDGES}) == len({edge.name for edge in EDGES}) == len(EDGES)


@pytest.mark.parametrize(("dtype", "name"), [("float16", "float16-lost"), ("float32", "float32-lost"),
                                             ("bfloat16", "bfloat16-lost"), ("float64", "float64-lost")])  # fmt: skip
def test_lost_numbers_are_the_first_that_a_float_has_not(dtype: str, name: str) -> None:
    (edge,) = [edge for edge in EDGES if edge.name == name]
    value = edge.bits(64)
    assert value is not None
    held = [int(np.array(whole, np.int64).astype(DTYPES[dtype])) for whole in (value - 1, value, value + 1)]
    assert [held[0] == value - 1, held[1] == value, held[2] == value + 1] == [True, False, True]


@pytest.mark.parametrize("dtype", DTYPES)
def test_strategies_reach_every_edge_of_every_dtype(dtype: str) -> None:
    wanted = set(bits_of(curated(dtype)).tolist())
    seen: set[int] = set()

    def reached(encoding: np.generic) -> bool:
        bits = int(np.asarray(encoding).view(word(DTYPES[dtype])))
        if bits in wanted:
            seen.add(bits)
        return seen == wanted

    assert find(strategies.encodings(dtype), reached, settings=REACHED) is not None


@pytest.mark.parametrize("dtype", [*INTEGERS, "float64"])
def test_arrays_of_every_dtype_hold_more_than_one_value(dtype: str) -> None:
    drawn = st.just((3, 17)).flatmap(lambda shape: strategies.arrays(dtype, shape))
    values = find(drawn, lambda array: len(np.unique(bits_of(array))) > 20, settings=REACHED)
    assert values.shape == (3, 17)
    assert values.dtype == DTYPES[dtype]


def test_float64_has_ordinals_nan_and_denormals() -> None:
    values = np.array([0.0, -0.0, 5e-324, -5e-324, 1.0, -1.0, np.inf, -np.inf])
    steps = ordinals(values)
    assert steps.tolist()[:4] == [0, 0, 1, -1]
    assert (from_ordinals(steps, "float64") == values).all()
    assert from_ordinals(steps[3:4], "float64").view(np.uint64)[0] == 1 << 63 | 1
    assert is_denormal(values).tolist() == [False, False, True, True, False, False, False, False]
    assert is_nan(np.array([np.nan, np.inf])).tolist() == [True, False]
    assert set(FORMATS) == {"bfloat16", "float16", "float32", "float64"}
