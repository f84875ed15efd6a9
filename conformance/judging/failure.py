"""A failure as a person reads it: where, what came, what was expected, why, and how to see it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlx_assay.conformance.judging.ulp import has_distance
from mlx_assay.conformance.record import Place
from mlx_assay.fixtures.case import Case, Subcase
from mlx_assay.fixtures.tensor import Step, Tensor

LAYOUTS = {"transpose": "transposed", "slice": "strided", "broadcast": "broadcast", "swap": "byte-swapped"}


def title(case: Case, subcase: Subcase) -> str:
    """`normalized_argmax[bfloat16 3x1025 strided]`, with the plain arguments behind the shape."""
    parts = [case.dtype]
    tensors = [value for value in subcase.arguments.values() if isinstance(value, Tensor)]
    if tensors:
        parts.append(extents(tensors[0].array.shape))
        parts += layouts(tensors[0].steps)
    parts += [f"{name}={value}" for name, value in subcase.arguments.items() if not isinstance(value, Tensor)]
    return f"{case.operation}[{' '.join(parts)}]"


def extents(shape: Sequence[int]) -> str:
    """`3x1025`, or `scalar`."""
    return "x".join(map(str, shape)) or "scalar"


def layouts(steps: Sequence[Step]) -> list[str]:
    """What the view of an array is called, each word once."""
    return list(dict.fromkeys(LAYOUTS[name] for name, _ in steps))


def where(index: Sequence[int], subcase: Subcase) -> str:
    """`row 1` where the output has one element a row of the input, else `at [1, 31]`; nothing for a scalar."""
    if not index:
        return ""
    ranks = [value.array.ndim for value in subcase.arguments.values() if isinstance(value, Tensor)]
    if len(index) == 1 and ranks and ranks[0] == 2:
        return f" row {index[0]}"
    return f" at {list(index)}"


def shown(bits: str, dtype: np.dtype[Any]) -> str:
    """One encoding: ids in decimal, floats as bits and value."""
    word = np.array(int(bits, 16), dtype=f"u{dtype.itemsize}").view(dtype)
    with np.errstate(all="ignore"):
        return f"{bits} ({float(word):.9g})" if has_distance(dtype) else str(int(word))


def difference_line(
    place: Place, dtype: np.dtype[Any], subcase: Subcase, count: int, total: int, worst: int | None, why: str
) -> str:
    """` row 1: got 1024 want 31 (tie lost: scores 0xc105 = 0xc105)`, with counts where there is more than one place."""
    reasons = [why] if why else []
    if worst is not None:
        reasons.append(f"{worst} ULP" if count == 1 else f"worst {worst} ULP")
    if total > 1:
        reasons.append(f"{count} of {total} places")
    behind = f" ({', '.join(reasons)})" if reasons else ""
    return f"{where(place.index, subcase)}: got {shown(place.got, dtype)} want {shown(place.want, dtype)}{behind}"


def context_line(policy: str, oracle: str, executor: str, replay: str) -> str:
    """The second line: policy, oracle, executor and the command that runs the case again."""
    parts = [f"policy {policy}" if policy else "", f"oracle {oracle}" if oracle else "", f"executor {executor}"]
    return "  " + " · ".join([*filter(None, parts), replay])
