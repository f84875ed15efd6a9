"""The benchmarks of apply_token_bitmask: one grammar's mask over a batch of logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import Arguments, Benchmark, Contender, Input, Moved, Shape
from mlx_assay.conformance.contracts.argmax_benchmarks import STOCK, bell
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import DTYPES

GRAMMAR = "mlx_assay.conformance.bench.peers.grammar"
IN_PLACE = "writes into its logits, the mask on the device before"


def _words(draw: Draw, dtype: str, count: int) -> np.ndarray:
    return draw.bits(DTYPES[dtype], (count,))


def arguments(dtype: str, shape: Shape) -> Arguments:
    """Logits, and the words of one mask as a grammar matcher has them, in NumPy's memory."""
    return {
        "logits": Input((shape["rows"], shape["vocab"]), dtype, bell),
        "bits": Input((_count(shape),), "int32", _words, "numpy"),
    }


def moved(dtype: str, shape: Shape) -> Moved:
    """Every logit in and out, each word once."""
    logits = shape["rows"] * shape["vocab"] * DTYPES[dtype].itemsize
    return Moved(logits + 4 * _count(shape), logits)


def part(given: Mapping[str, Any], draw: Draw) -> tuple[Mapping[str, Any], tuple[Any, ...]]:
    """One row, under the whole mask."""
    row = draw.integer(0, len(given["logits"]))
    return {**given, "logits": given["logits"][row : row + 1]}, (slice(row, row + 1),)


def _count(shape: Shape) -> int:
    return -(-shape["vocab"] // 32)


def _in_place(name: str, function: str, *needs: str) -> Contender:
    return Contender(
        name=name,
        place=f"{GRAMMAR}:{function}",
        library="torch",
        needs=("torch", *needs),
        executors=("cuda",),
        same=False,
        note=IN_PLACE,
    )


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
            Contender("stock", f"{STOCK}:mask"),
            Contender("stock, compiled", f"{STOCK}:compiled_mask"),
            Contender("xgrammar-mlx", f"{GRAMMAR}:mlx_mask"),
            _in_place("xgrammar cuda", "cuda_mask"),
            _in_place("xgrammar triton", "triton_mask", "triton"),
        ),
        reference="stock",
    ),
)
