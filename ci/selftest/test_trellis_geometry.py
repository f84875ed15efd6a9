"""The geometry of packed trellis matrices: what fits together, and what is said where it does not."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import pytest

from mlx_assay.impl.trellis import Geometry, words_per_block

DOWN = {"k": 2, "L": 12, "T": 256, "axis": 0, "rows": 3, "cols": 512, "in_features": 3, "out_features": 512}
INTERLEAVED = {**DOWN, "k": 3, "block_interleave": 2}


@pytest.mark.parametrize(("k", "words"), [(2, 16), (3, 24), (4, 32)])
def test_words_per_block(k: int, words: int) -> None:
    assert words_per_block(256, k) == words
    assert Geometry(**{**DOWN, "k": k}).words_per_block == words


def test_words_per_block_are_whole() -> None:
    with pytest.raises(ValueError, match=r"255 \* 3 = 765"):
        words_per_block(255, 3)


def test_code_shapes() -> None:
    assert Geometry(**DOWN).code_shape == (3, 32)
    assert Geometry(**DOWN).blocks == 2
    assert Geometry(**{**INTERLEAVED, "cols": 1536, "out_features": 1536}).code_shape == (3, 3, 48)


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("k of 2, 3, 4 bits a weight but got 5", {"k": 5}),
        ("k of 2, 3, 4 bits a weight but got 1", {"k": 1}),
        ("L of 2 ", {"L": 1}),
        ("24 state bits but got 25", {"L": 25}),
        ("T of 1 weight", {"T": 0}),
        (r"T \* k as a multiple of 32 bits but got 8 \* 2", {"T": 8}),
        (r"T \* k is 0|T of 1", {"T": -256}),
        ("axis 0 or 1 but got 2", {"axis": 2}),
        ("rows=0", {"rows": 0}),
        ("multiple of T = 256 but got 511", {"cols": 511}),
        ("multiple of T = 256 but got 0", {"cols": 0}),
        (r"\(3, 512\) for axis 0 .* \(512, 3\)", {"in_features": 512, "out_features": 3}),
        (r"\(512, 3\) for axis 1 .* \(3, 512\)", {"axis": 1}),
        ("k as an int but got 2.0", {"k": 2.0}),
        ("axis as an int but got False", {"axis": False}),
        ("block_interleave None or 2 but got 1", {"block_interleave": 1}),
        ("k 3, T 256 and axis 0 for block_interleave 2 but got k 2", {"block_interleave": 2}),
    ],
)
def test_what_does_not_fit(message: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=message):
        Geometry(**{**DOWN, **change})


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("multiple of 512 .* but got 768", {"cols": 768, "out_features": 768}),
        ("T 128", {"T": 128}),
        ("axis 1", {"axis": 1, "in_features": 512, "out_features": 3}),
    ],
)
def test_interleaving_that_does_not_fit(message: str, change: dict[str, Any]) -> None:
    Geometry(**INTERLEAVED)
    with pytest.raises(ValueError, match=message):
        Geometry(**{**INTERLEAVED, **change})


def test_a_window_does_not_exceed_its_block() -> None:
    assert Geometry(2, 16, 16, 0, 1, 16, 1, 16).words_per_block == 1
    assert Geometry(4, 16, 8, 1, 1, 8, 8, 1).words_per_block == 1


def words(*shape: int) -> mx.array:
    return mx.zeros(shape, mx.uint32)


@pytest.mark.parametrize(
    ("k", "axis", "shape", "expected"),
    [
        (2, 0, (5, 32), Geometry(2, 12, 256, 0, 5, 512, 5, 512)),
        (3, 0, (5, 24), Geometry(3, 12, 256, 0, 5, 256, 5, 256)),
        (4, 1, (5, 96), Geometry(4, 12, 256, 1, 5, 768, 768, 5)),
        (3, 0, (2, 5, 48), Geometry(3, 12, 256, 0, 5, 1024, 5, 1024, 2)),
    ],
)
def test_from_arrays(k: int, axis: int, shape: tuple[int, ...], expected: Geometry) -> None:
    found = Geometry.from_arrays(words(*shape), mx.zeros(5, mx.float16), k=k, L=12, T=256, axis=axis)
    assert found == expected
    assert found.code_shape == shape


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("code '1mad' but got 'lut'", {"code": "lut"}),
        ("codes of uint32 but got mlx.core.int32", {"codes": mx.zeros((5, 32), mx.int32)}),
        (r"got shape \(160,\)", {"codes": words(160)}),
        (r"got shape \(0, 32\)", {"codes": words(0, 32)}),
        (r"got shape \(1, 1, 5, 48\)", {"codes": words(1, 1, 5, 48)}),
        (r"scales of shape \(5,\).*\(4,\)", {"scales": mx.zeros(4)}),
        (r"scales of shape \(5,\).*\(5, 1\)", {"scales": mx.zeros((5, 1))}),
        ("whole 3-bit weights but got 32 words", {"k": 3}),
        ("whole 0-bit weights", {"k": 0}),
        ("multiple of T = 256 but got 528", {"codes": words(5, 33)}),
        ("3-D codes with k 3", {"codes": words(1, 5, 48)}),
        ("L 12, .* but got k 3, L 11", {"codes": words(1, 5, 48), "k": 3, "L": 11}),
        ("but got k 3, .* axis 1", {"codes": words(1, 5, 48), "k": 3, "axis": 1}),
        ("and 24 words", {"codes": words(1, 5, 24), "k": 3}),
    ],
)
def test_arrays_that_do_not_fit(message: str, change: dict[str, Any]) -> None:
    fitting = {"codes": words(5, 32), "scales": mx.zeros(5), "k": 2, "L": 12, "T": 256, "axis": 0}
    Geometry.from_arrays(**fitting)
    with pytest.raises(ValueError, match=message):
        Geometry.from_arrays(**{**fitting, **change})
