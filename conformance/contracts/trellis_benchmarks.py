"""The benchmarks of the projections of one row over trellis codes, at the size of a model's down projection."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import GPUS, Arguments, Benchmark, Contender, Input, Moved, Shape
from mlx_assay.conformance.contracts.argmax_benchmarks import STOCK, TORCH, bell
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import DTYPES
from mlx_assay.fixtures.trellis_words import T

L = 12
SCALES = "float16"
PAIR_WORDS = 48


def _words(draw: Draw, dtype: str, count: int) -> np.ndarray:
    return draw.bits(DTYPES[dtype], (count,))


def _x(draw: Draw, dtype: str, count: int) -> np.ndarray:
    return bell(draw, dtype, count, scale=1.0)


def _scales(draw: Draw, dtype: str, count: int) -> np.ndarray:
    """Of the size of a layer's weights, in 256 steps."""
    table = ((128 + np.arange(256)) / 16384).astype(DTYPES[dtype])
    chosen: np.ndarray = table[draw.bits(np.dtype(np.uint8), (count,))]
    return chosen


def arguments(dtype: str, shape: Shape) -> Arguments:
    """x of one row, codes row by row, a scale a row; the result has x's dtype."""
    return _arguments(dtype, shape, (shape["rows"], shape["cols"] * shape["k"] // 32), None)


def pairs(dtype: str, shape: Shape) -> Arguments:
    """The same with 3-bit codes, two blocks of a row side by side."""
    return _arguments(dtype, shape, (shape["cols"] // (2 * T), shape["rows"], PAIR_WORDS), 2)


def _arguments(dtype: str, shape: Shape, codes: tuple[int, ...], interleave: int | None) -> Arguments:
    rows, cols, k = shape["rows"], shape["cols"], shape["k"]
    return {
        "x": Input((1, rows), dtype, _x),
        "codes": Input(codes, "uint32", _words),
        "scales": Input((rows,), SCALES, _scales),
        **{"k": k, "L": L, "T": T, "axis": 0, "rows": rows, "cols": cols, "block_interleave": interleave},
        "output_dtype": None,
    }


def moved(dtype: str, shape: Shape) -> Moved:
    """k bits a weight, x and a scale a row; a row of outputs."""
    rows, cols, itemsize = shape["rows"], shape["cols"], DTYPES[dtype].itemsize
    return Moved(rows * cols * shape["k"] // 8 + rows * (itemsize + DTYPES[SCALES].itemsize), cols * itemsize)


def refused(shape: Shape) -> str:
    """Of codes row by row: 2 or 4 bits, whole blocks of T columns."""
    return "k=2 or k=4" if shape["k"] not in (2, 4) else _whole(shape, T)


def refused_pairs(shape: Shape) -> str:
    """Of interleaved codes: 3 bits, whole pairs of blocks."""
    return "k=3" if shape["k"] != 3 else _whole(shape, 2 * T)


def _whole(shape: Shape, width: int) -> str:
    return f"cols as a multiple of {width}" if shape["cols"] % width else ""


def part(given: Mapping[str, Any], draw: Draw) -> tuple[Mapping[str, Any], tuple[Any, ...]]:
    """One block of columns, or one pair of blocks."""
    codes, width = given["codes"], T if given["block_interleave"] is None else 2 * T
    block = draw.integer(0, given["cols"] // width)
    words = width * given["k"] // 32
    chosen = codes[block : block + 1] if codes.ndim == 3 else codes[:, block * words : (block + 1) * words]
    place = (slice(None), slice(block * width, (block + 1) * width))
    return {**given, "codes": np.ascontiguousarray(chosen), "cols": width}, place


DENSE = "reads 16 bits a weight, of a matrix of its own"
FOUR_BITS = "affine quantisation, groups of 64, of matrices of its own"
PEERS = (
    Contender("MLX, dense bfloat16", f"{STOCK}:dense_row", executors=GPUS, same=False, note=DENSE),
    Contender("MLX, 4 bits", f"{STOCK}:four_bit_row", executors=GPUS, same=False, note=FOUR_BITS),
    Contender(
        name="torch, dense bfloat16",
        place=f"{TORCH}:dense_row",
        library="torch",
        needs=("torch",),
        executors=("cuda",),
        same=False,
        note=DENSE,
    ),
)


def _benchmark(k: int) -> Benchmark:
    return Benchmark(
        dtypes=("bfloat16",),
        shape={"rows": 17408, "cols": 5120, "k": k},
        host={"rows": 512, "cols": 1024, "k": k},
        tiny={"rows": 128, "cols": 512, "k": k},
        arguments=pairs if k == 3 else arguments,
        moved=moved,
        part=part,
        contenders=PEERS,
        wholly=False,
        refused=refused_pairs if k == 3 else refused,
    )


ROW_MAJOR = (_benchmark(2), _benchmark(4))
INTERLEAVED = (_benchmark(3),)
