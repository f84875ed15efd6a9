"""The benchmarks of normalized_argmax: greedy decoding over the vocabularies in use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import Arguments, Benchmark, Contender, Input, Moved, Shape
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.encoding import word
from mlx_assay.fixtures.tensor import DTYPES

STOCK = "mlx_assay.conformance.bench.peers.mlx_stock"
TORCH = "mlx_assay.conformance.bench.peers.torch_stock"
IDS = 4
"""Bytes of an id."""
SCALE = 0.45
"""Logits up to 2, whose scores are below -8 from some 20,000 on: eight encodings of a logit make one score."""
TOP = 1.9375
APART = 4


def bell(draw: Draw, dtype: str, count: int, scale: float = SCALE) -> np.ndarray:
    """`count` elements out of 65,536 bell-shaped values."""
    table = draw.normal(DTYPES[dtype], (1 << 16,), scale)
    chosen: np.ndarray = table[draw.bits(np.dtype(np.uint16), (count,))]
    return chosen


def logits(draw: Draw, dtype: str, count: int, vocab: int) -> np.ndarray:
    """Below TOP but for some two elements a row, anywhere: TOP, and before it one that is a few encodings less.

    They are apart as logits, and mostly one as scores: the lower id wins, which the logits alone do not tell, nor a
    part of the row.
    """
    values: np.ndarray = np.minimum(bell(draw, dtype, count), DTYPES[dtype].type(TOP - 0.125))
    bits, top = values.view(word(values.dtype)), int(np.array(TOP, DTYPES[dtype]).view(word(values.dtype)))
    pairs = max(1, count // vocab)
    first = draw.integers(0, count, (pairs,))
    second = first + draw.integers(1, max(vocab, 2), (pairs,))
    bits[first] = (top - draw.integers(1, APART, (pairs,))).astype(bits.dtype)
    bits[second[second < count]] = top
    return values


def arguments(dtype: str, shape: Shape) -> Arguments:
    """Logits of a row a sequence."""
    fill = partial(logits, vocab=shape["vocab"])
    return {"logits": Input((shape["rows"], shape["vocab"]), dtype, fill)}


def moved(dtype: str, shape: Shape) -> Moved:
    """Every logit once, an id a row."""
    return Moved(shape["rows"] * shape["vocab"] * DTYPES[dtype].itemsize, shape["rows"] * IDS)


def part(given: Mapping[str, Any], draw: Draw) -> tuple[Mapping[str, Any], tuple[Any, ...]]:
    """One row."""
    row = draw.integer(0, len(given["logits"]))
    return {"logits": given["logits"][row : row + 1]}, (slice(row, row + 1),)


CONTENDERS = (
    Contender("stock", f"{STOCK}:argmax"),
    Contender("stock, compiled", f"{STOCK}:compiled_argmax"),
    Contender(
        name="torch log_softmax + argmax",
        place=f"{TORCH}:argmax",
        library="torch",
        needs=("torch",),
        executors=("cuda",),
        same=False,
        note="scores of torch's own rounding",
    ),
)


def _benchmark(dtypes: tuple[str, ...], rows: int, vocab: int) -> Benchmark:
    return Benchmark(
        dtypes=dtypes,
        shape={"rows": rows, "vocab": vocab},
        host={"rows": min(rows, 4), "vocab": vocab // 8},
        tiny={"rows": 1, "vocab": 64},
        arguments=arguments,
        moved=moved,
        part=part,
        contenders=CONTENDERS,
        reference="stock",
    )


BENCHMARKS = (
    _benchmark(("bfloat16",), 64, 262144),
    _benchmark(("bfloat16", "float32"), 512, 151936),
    _benchmark(("bfloat16",), 1, 262144),
)
