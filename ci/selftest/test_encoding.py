"""Edge encodings are what they are called, and a logsumexp made of additions and products is one."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.encoding import (
    EDGES,
    FLOATS,
    GROUPS,
    bits_of,
    edges,
    encoded,
    from_ordinals,
    is_denormal,
    is_nan,
    ordinals,
)
from mlx_assay.fixtures.logsumexp import rounded_logsumexp
from mlx_assay.fixtures.tensor import DTYPES


@pytest.mark.parametrize("dtype", FLOATS)
def test_named_edges_have_their_values(dtype: str) -> None:
    info = ml_dtypes.finfo(DTYPES[dtype])
    expected = {
        "zero": 0.0,
        "smallest-denormal": float(info.smallest_subnormal),
        "middle-denormal": float(info.tiny) / 2,
        "largest-denormal": float(info.tiny) - float(info.smallest_subnormal),
        "smallest-normal": float(info.tiny),
        "above-smallest-normal": float(info.tiny) + float(info.smallest_subnormal),
        "below-one": 1 - float(info.eps) / 2,
        "one": 1.0,
        "above-one": 1 + float(info.eps),
        "half-ulp-of-one": float(info.eps) / 2,
        "first-odd-lost": 2 / float(info.eps),
        "largest": float(info.max),
        "infinity": np.inf,
    }
    for name, value in expected.items():
        assert float(encoded(dtype, name)[0]) == value, name
        assert float(encoded(dtype, f"minus-{name}")[0]) == -value, name


@pytest.mark.parametrize("dtype", FLOATS)
def test_groups_hold_what_they_name(dtype: str) -> None:
    with np.errstate(invalid="ignore"):
        assert is_nan(edges(dtype, "nan")).all()
        assert np.isinf(edges(dtype, "infinity").astype(np.float64)).all()
    assert is_denormal(edges(dtype, "denormal")).all()
    assert not is_denormal(edges(dtype, "zero", "normal", "extreme", "infinity", "nan")).any()
    assert not is_nan(edges(dtype, "zero", "denormal", "normal", "extreme", "infinity")).any()
    assert len(np.unique(bits_of(edges(dtype)))) == 2 * len(EDGES)
    assert {edge.group for edge in EDGES} == set(GROUPS)


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"smallest-normal.*'tiny'"):
        encoded("float16", "tiny")
    with pytest.raises(ValueError, match=r"denormal.*subnormal"):
        edges("float16", "subnormal")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_every_encoding_is_classified_as_the_library_classifies_it(dtype: str) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype])
    with np.errstate(invalid="ignore"):
        wide = every.astype(np.float64)
    assert (is_nan(every) == np.isnan(wide)).all()
    tiny = float(ml_dtypes.finfo(DTYPES[dtype]).tiny)
    assert (is_denormal(every) == ((np.abs(wide) < tiny) & (wide != 0))).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_ordinals_step_as_neighbours_do(dtype: str) -> None:
    every = np.arange(2**16, dtype=np.uint16).view(DTYPES[dtype])
    numbers = every[~is_nan(every)]
    by_ordinal = numbers[np.argsort(ordinals(numbers), kind="stable")].astype(np.float64)
    assert (np.diff(by_ordinal[1:-1]) >= 0).all()
    assert (np.diff(by_ordinal) == 0).sum() == 1
    back = from_ordinals(ordinals(numbers), dtype)
    assert (bits_of(back)[bits_of(numbers) != 0x8000] == bits_of(numbers)[bits_of(numbers) != 0x8000]).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_logsumexp_is_near_the_true_one(dtype: str) -> None:
    rows = Draw(3).normal(DTYPES[dtype], (50, 3000), 4.0)
    wide = rows.astype(np.float64)
    true = np.log(np.exp(wide).sum(axis=-1, keepdims=True))
    found = rounded_logsumexp(rows)
    assert found.dtype == DTYPES[dtype]
    assert found.shape == (50, 1)
    assert (np.abs(ordinals(found) - ordinals(true.astype(DTYPES[dtype]))) <= 1).all()


def test_logsumexp_of_special_rows() -> None:
    rows = np.array([[np.nan, 1], [np.inf, 1], [-np.inf, -np.inf], [-np.inf, 3], [-1000, -1000], [65504, 1]])
    found = rounded_logsumexp(rows.astype(np.float16))[:, 0]
    assert np.isnan(found[0])
    assert found[1:].tolist() == [np.inf, -np.inf, 3, np.float16(-1000 + np.log(2)), 65504]
