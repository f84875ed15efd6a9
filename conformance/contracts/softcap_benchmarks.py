"""The benchmarks of the compiled softcap: Gemma's cap on a batch of logits, beside a copy of as many bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import Arguments, Benchmark, Contender, Input, Moved, Shape
from mlx_assay.conformance.contracts.argmax_benchmarks import STOCK, TORCH, bell
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import DTYPES

CAP = 30.0
SAMPLE = 4096
"""Elements of a part: the correctly rounded oracle works in high precision."""


def _logits(draw: Draw, dtype: str, count: int) -> np.ndarray:
    return bell(draw, dtype, count, scale=20.0)


def arguments(dtype: str, shape: Shape) -> Arguments:
    """Logits of a size at which the cap bends them."""
    return {"x": Input((shape["rows"], shape["vocab"]), dtype, _logits), "cap": CAP}


def moved(dtype: str, shape: Shape) -> Moved:
    """Every logit in and out."""
    size = shape["rows"] * shape["vocab"] * DTYPES[dtype].itemsize
    return Moved(size, size)


def part(given: Mapping[str, Any], draw: Draw) -> tuple[Mapping[str, Any], tuple[Any, ...]]:
    """A run of elements of one row."""
    rows, vocab = given["x"].shape
    row, first = draw.integer(0, rows), draw.integer(0, max(vocab - SAMPLE, 0) + 1)
    place = (slice(row, row + 1), slice(first, first + SAMPLE))
    return {**given, "x": np.ascontiguousarray(given["x"][place])}, place


BENCHMARKS = (
    Benchmark(
        dtypes=("bfloat16", "float32"),
        shape={"rows": 64, "vocab": 262144},
        host={"rows": 4, "vocab": 32768},
        tiny={"rows": 1, "vocab": 64},
        arguments=arguments,
        moved=moved,
        part=part,
        contenders=(
            Contender("stock", f"{STOCK}:softcap"),
            Contender("mlx-lm, compiled", "mlx_assay.conformance.bench.peers.mlx_lm_stock:softcap"),
            Contender(
                "a copy", f"{STOCK}:copy", same=False, note="reads and writes as many bytes, and computes nothing"
            ),
            Contender(
                name="torch, three operations",
                place=f"{TORCH}:softcap",
                library="torch",
                needs=("torch",),
                executors=("cuda",),
                same=False,
                note="tanh of torch's own rounding",
            ),
        ),
        reference="stock",
    ),
)
