"""The contracts of the single-row projections over trellis codes; docs/contracts.md carries the rules' numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import Benchmark
from mlx_assay.conformance.contract import EXECUTOR, Arguments, Contract, Reference, Rule
from mlx_assay.conformance.contracts import trellis_benchmarks, trellis_broken, trellis_faults
from mlx_assay.conformance.contracts.trellis_decode import FLOATS, GEOMETRY, LAYOUT_RULES, flushes, packed
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.tensor import DTYPES
from mlx_assay.oracles import fused
from mlx_assay.oracles.registry import load
from mlx_assay.oracles.rounding import round_once
from mlx_assay.oracles.trellis_layout import Packed

SHOWN = 3
"""Mistakes that an explanation names, at most."""
Mistake = tuple[str, Callable[[], np.ndarray]]
HIGHAM = "Higham, Accuracy and Stability of Numerical Algorithms, 3.1"
BOUND_RULE = "rule 10: n u / (1 - n u) of the sum of sizes, n roundings on a term's way (Higham, 2002, 3.1)"


def order_of(arguments: Arguments) -> str:
    """The order in which the executor says that it adds a SIMD group; ValueError where it does not say."""
    order = arguments[EXECUTOR].get("simd_sum", "unknown")
    if order not in fused.ORDERS:
        raise ValueError(
            f"Expected an executor that adds a SIMD group in one of the orders {', '.join(fused.ORDERS)} "
            f"but its order is {order!r}: ask it with `mlx-assay order`, and add what it does to oracles/fused.py"
        )
    return str(order)


def output_dtype(arguments: Arguments) -> np.dtype[Any]:
    """The named dtype, or that of x."""
    name = arguments["output_dtype"]
    return arguments["x"].dtype if name is None else DTYPES[name]


def _row(arguments: Arguments) -> np.ndarray:
    given = (arguments["x"], packed(arguments), arguments["scales"])
    row: np.ndarray = load("trellis_row").down_row(
        *given, output_dtype(arguments), order_of(arguments), flushes(arguments)
    )
    return row


def _with_sum(arguments: Arguments, factored: bool = False) -> Arguments:
    """Adds the exact sum and the sum of sizes, where nothing can overflow and no zero's sign is open."""
    oracle, x, scales = load("trellis_bound"), arguments["x"], arguments["scales"]
    exact = oracle.exact(x, packed(arguments), scales) if oracle.bounded(x, scales, factored) else None
    if exact is not None and not oracle.settled(x, *exact, output_dtype(arguments)):
        exact = None
    return {**arguments, "exact": exact}


def _bounded_row(arguments: Arguments) -> np.ndarray:
    return round_once(arguments["exact"][0], output_dtype(arguments))


def _distance(arguments: Arguments, expected: np.ndarray) -> np.ndarray:
    distance: np.ndarray = load("trellis_bound").distance(arguments["x"], *arguments["exact"], expected)
    return distance


def _finite(arguments: Arguments) -> bool:
    return arguments["exact"] is not None


def explain(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """The column's block and position, and which known mistakes give these very bits."""
    column, T = index[1], arguments["T"]
    place = f"position {column % T} of block {column // T}"
    bits = got[index].tobytes()
    found = [name for name, made in _mistakes(arguments, column // T) if made()[0, column % T].tobytes() == bits]
    return f"{place}: as {' or '.join(found[:SHOWN])} would give" if found else place


def _mistakes(arguments: Arguments, block: int) -> Iterator[Mistake]:
    """Ways to be wrong, each as the block's columns [1, T] that it gives."""
    oracle, whole = load("trellis_row"), packed(arguments)
    size = whole.T * whole.k // 32
    words = whole.words[:, block * size : (block + 1) * size]
    one = Packed(words, *whole[1:4])
    x, scales, dtype, flush = arguments["x"], arguments["scales"], output_dtype(arguments), flushes(arguments)
    order, row = order_of(arguments), partial(oracle.down_row, x, one, scales, dtype)
    for name, changes in oracle.MISTAKES.items():
        yield name, partial(row, order, flush, **changes)
    yield "denormals otherwise", partial(row, order, not flush)
    for other in fused.ORDERS:
        if other != order:
            yield f"the {other} order of a SIMD group's sum", partial(row, other, flush)
    backward = Packed(words[::-1], *whole[1:4])
    yield "descending rows", partial(oracle.down_row, x[:, ::-1], backward, scales[::-1], dtype, order, flush)


COMMON_RULES = (
    *LAYOUT_RULES,
    Rule(5, "128 splits of ceil(rows / 128) rows each, ascending: sum = fma(code * scale, x, sum) from +0 in float32, "
         "the code unrefined, its product with the scale rounded before; a split without rows is +0.", "this project"),
    Rule(6, "The splits are added as MLX sums 128 rows: lane y is ((0 + p[y] + p[y + 32]) + p[y + 64]) + p[y + 96], "
         "then the SIMD group's 32 lanes.", "mlx: reduce_col.h, col_reduce_looped"),
    Rule(7, "The order of a SIMD group's sum is the executor's, who says it: ascending-butterfly, "
         "descending-butterfly, sequential or reverse-sequential.", "this project: docs/fidelity.md"),
    Rule(8, "The result [1, cols] is rounded once, to nearest even, to x's dtype or the one that is named.",
         "mlx: astype"),
    Rule(9, "Any NaN equals any NaN; float32 denormals count as the executor says.",
         "IEEE 754-2019, 6.2.3 (relaxation nan-any)"),
    Rule(10, "Where nothing overflows, the result lies within n u / (1 - n u) * sum |code * scale * x| of the exact "
         "sum, u = 2^-24, n = ceil(rows / 128) + 38, rounded.", HIGHAM),
)  # fmt: skip
GUARD = (
    "x of other than one row, axis 1, T other than 256, L over 12, cols that are no multiple of 256, {codes}, and "
    "arrays of other shapes or dtypes raise ValueError or TypeError."
)
BITS = Reference("trellis_row", _row, Verdict.SAME_VALUE)
BOUND = Reference("trellis_bound", _bounded_row, Verdict.WITHIN_ULP, _distance, BOUND_RULE, _finite)


def _contract(
    operation: str, summary: str, codes: str, more: tuple[str, ...] = (), benchmarks: tuple[Benchmark, ...] = ()
) -> Contract:
    return Contract(
        operation=operation,
        summary=summary,
        parameters=("x", "codes", "scales", *GEOMETRY, "output_dtype", *more),
        dtypes=FLOATS,
        references=(BITS, BOUND),
        rules=(*COMMON_RULES, Rule(11, GUARD.format(codes=codes), "this project")),
        prepare=_with_sum,
        explain=explain,
        expansion=16,
        suspects=trellis_faults.row,
        broken=trellis_broken.row,
        benchmarks=benchmarks,
    )


CONTRACTS = [
    _contract("down_codebook_row", "x [1, rows] times a stored matrix of row-major 2- or 4-bit codes",
              "k 3, interleaved codes", benchmarks=trellis_benchmarks.ROW_MAJOR),
    _contract("down_k3_interleaved_codebook_row", "x [1, rows] times a stored matrix of interleaved 3-bit codes",
              "k 2 and 4, row-major codes", benchmarks=trellis_benchmarks.INTERLEAVED),
    _contract("scatter_row", "x [1, rows] times a stored matrix of codes of any layout, plain or balanced",
              "a kernel of another name", ("kernel",)),
    Contract(
        operation="factored_row",
        summary="x [1, rows] times a stored matrix of codes, scaled once at the end, within a bound",
        parameters=("x", "codes", "scales", *GEOMETRY, "output_dtype"),
        dtypes=FLOATS,
        references=(BOUND,),
        rules=(
            *LAYOUT_RULES,
            Rule(5, "The sum of y * (scale * x) over rows, times the rounded reciprocal of d once, in any order.",
                 "this project"),
            Rule(6, "Where nothing overflows, the result lies within n u / (1 - n u) * sum |code * scale * x| of the "
                 "exact sum, u = 2^-24, n = ceil(rows / 128) + 38, rounded; its bits are not promised.", HIGHAM),
        ),
        prepare=partial(_with_sum, factored=True),
        expansion=16,
        suspects=trellis_faults.row,
        broken=trellis_broken.factored,
    ),
]  # fmt: skip
