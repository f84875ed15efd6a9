"""The contract of trellis_fold; docs/contracts.md carries the rules' numbers."""

from __future__ import annotations

import numpy as np

from mlx_assay.conformance.contract import Arguments, Contract, Reference, Rule
from mlx_assay.conformance.contracts import trellis_broken, trellis_faults
from mlx_assay.conformance.contracts.trellis_decode import flushes
from mlx_assay.conformance.contracts.trellis_row import order_of
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.tensor import DTYPES
from mlx_assay.oracles import fused
from mlx_assay.oracles.registry import load


def _folded(arguments: Arguments, order: str, oracle: str = "trellis_row") -> np.ndarray:
    dtype = DTYPES[arguments["output_dtype"]]
    sums: np.ndarray = load(oracle).trellis_fold(arguments["partial"], dtype, order, flushes(arguments))
    return sums


def _by(oracle: str, alone: bool = True) -> Reference:
    return Reference(
        oracle, lambda arguments: _folded(arguments, order_of(arguments), oracle), Verdict.SAME_VALUE, alone=alone
    )


def explain(arguments: Arguments, got: np.ndarray, want: np.ndarray, index: tuple[int, ...]) -> str:
    """Which other order of a SIMD group's sum gives these bits."""
    for order in fused.ORDERS:
        if order != order_of(arguments) and _folded(arguments, order)[index].tobytes() == got[index].tobytes():
            return f"the {order} order of a SIMD group's sum gives these bits"
    return f"column {index[1]}"


CONTRACTS = [
    Contract(
        operation="trellis_fold",
        summary="the sum of float32 partials [1, 128, cols] as MLX sums their columns",
        parameters=("partial", "output_dtype"),
        dtypes=("bfloat16", "float16", "float32"),
        references=(_by("trellis_row"), _by("mlx_column_sum"), _by("stock_metal", alone=False)),
        rules=(
            Rule(1, "Lane y of 32 is ((0 + p[y] + p[y + 32]) + p[y + 64]) + p[y + 96], each sum rounded to float32.",
                 "mlx: reduce_col.h, col_reduce_looped"),
            Rule(2, "The 32 lanes are added in the order that the executor says of its SIMD groups.",
                 "this project: docs/fidelity.md"),
            Rule(3, "The result [1, cols] is rounded once, to nearest even, to the named dtype.", "mlx: astype"),
            Rule(4, "Any NaN equals any NaN; float32 denormals count as the executor says.",
                 "IEEE 754-2019, 6.2.3 (relaxation nan-any)"),
        ),
        explain=explain,
        suspects=trellis_faults.folded,
        broken=trellis_broken.folded,
        addends=lambda arguments: (np.ascontiguousarray(arguments["partial"][0].T),),
    ),
]  # fmt: skip
