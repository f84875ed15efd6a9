"""Rows that versions have treated differently, or may: NaN, infinities, ties, zeros, denormals, length, order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import DTYPES

if TYPE_CHECKING:
    from mlx_assay.conformance.versions.inputs import Input

NAN, INF = float("nan"), float("inf")
SHORT = {
    "nan-leads": [NAN, 1, 2],
    "nan-amid": [3, NAN, 1, 5],
    "nan-ends": [1, 2, NAN],
    "nan-below": [-1, -2, NAN],
    "nan-twice": [1, NAN, NAN, 7],
    "nan-alone": [NAN] * 4,
    "nan-with-infinities": [INF, NAN, -INF],
    "infinity": [0, INF, 1],
    "infinity-twice": [0, INF, INF, 1],
    "infinity-behind-rejected": [-INF, INF, 0, 0],
    "rejected": [-INF] * 4,
    "rejected-but-one": [-INF, -2.5, -INF],
    "ties": [1, 5, 5, 2],
    "zeros": [-0.0, 0.0, -0.0],
    "denormals": [1e-7, 6e-8, 0.0, -6e-8],
    "smallest": [1e-40, 2e-40, -1e-40],
}
LONG = (33, 1000, 4096, 4097, 20001)
"""Lengths on either side of a SIMD group, of MLX's looped kernels (4,096) and of sums in the halves' own type."""

MATRICES = ((1, 128, 256), (8, 33), (31, 64), (40, 70), (128, 65), (300, 64), (2000, 7), (33, 1500))
CAPS = (30.0, 1 / 3)
"""Caps for compiled graphs: the 7 digits that MLX prints of the first give the same float32, of the second not."""


def special() -> Iterator[Input]:
    """The special inputs of every operation, in every dtype."""
    from mlx_assay.conformance.versions.inputs import Input

    for name, dtype in DTYPES.items():
        if name not in ("bfloat16", "float16", "float32"):
            continue
        for kind, row in _rows(dtype):
            case = Case("rows", name, kind)
            for operation in ("argmax", "sum_rows", "tanh", "exp", "sum_all"):
                yield Input(operation, case, "", {"x": row})
            for operation in ("logsumexp", "normalized_argmax"):
                yield Input(operation, case, "", {"logits": row})
            yield Input("argmax_given", case, "", {"logits": row, "lse": np.ones((1, 1), dtype)})
            yield Input("divide", case, "", {"x": row, "y": np.ascontiguousarray(row[:, ::-1])})
            yield Input("logit_softcap", case, "", {"x": row}, {"cap": 1 / 3})
            for cap in CAPS:
                yield Input("compiled_logit_softcap", case, f"cap {cap:.9g}", {"x": row}, {"cap": cap})
        for shape in MATRICES:
            case = Case.make("matrices", name, "normal", {"shape": "x".join(map(str, shape))})
            drawn = Draw(case.digest).normal(dtype, shape).reshape(-1, shape[-1])
            for operation in ("sum_rows", "sum_columns", "sum_all"):
                yield Input(operation, case, "", {"x": drawn})


def _rows(dtype: np.dtype[Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Rows [1, V] with the names of their kinds."""
    for kind, values in SHORT.items():
        yield kind, np.array([values], np.float32).astype(dtype)
    for length in LONG:
        case = Case.make("rows", str(dtype), "long", {"length": length})
        drawn = Draw(case.digest).normal(dtype, (1, length), 3.0)
        yield f"long/{length}", drawn
        spoilt = drawn.copy()
        spoilt[0, [length // 3, length // 2]] = np.nan
        yield f"long-with-nan/{length}", spoilt
        yield f"ones/{length}", np.ones((1, length), dtype)
