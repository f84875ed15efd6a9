"""The order in which a sum is added up, as a description that can be run.

Two sums of the same numbers agree in bits only if their orders do. A tree is a list of steps, each of which makes fewer
numbers of the last axis; every addition rounds to the numbers' dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import ml_dtypes
import numpy as np

from mlx_assay.oracles.fault import encodings
from mlx_assay.oracles.fused import fma

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

Combination = Literal["sequential", "reverse", "halves", "numpy", "ascending-butterfly", "descending-butterfly"]
"""Ways to add a group of numbers.

`sequential` and `reverse` add one after the other from the first or the last. `halves` adds the sums of the two halves,
the lower one the smaller where they differ. `numpy` is NumPy's own: blocks of at most 128 with eight accumulators, in
halves. The butterflies add the lane whose number differs in one bit, from the lowest bit up or from the highest down; a
group that is no power of two is filled up with zeros.
"""


@dataclass(frozen=True)
class Lanes:
    """`count` accumulators, each of which starts at zero and adds its own numbers one after the other.

    Strided lanes take turns, `block` neighbouring numbers at a time; contiguous ones take ceil(n / count) each.
    """

    count: int
    block: int = 1
    contiguous: bool = False

    def dealt(self, values: np.ndarray, fill: float) -> np.ndarray:
        """[..., n] as [..., count, most of a lane], where a lane that has fewer ends with `fill`."""
        n = values.shape[-1]
        turn = self.count * (-(-n // self.count) if self.contiguous else self.block)
        turns = max(1, -(-n // turn))
        padded = np.full((*values.shape[:-1], turns * turn), fill, values.dtype)
        padded[..., :n] = values
        if self.contiguous:
            return padded.reshape(*values.shape[:-1], self.count, -1)
        rounds = padded.reshape(*values.shape[:-1], turns, self.count, self.block)
        return np.moveaxis(rounds, -3, -2).reshape(*values.shape[:-1], self.count, turns * self.block)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """[..., count]."""
        return _sequential(self.dealt(values, -0.0))

    def fused(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """[..., count]: the lanes' sums of f32 products, each multiplied and added with one rounding."""
        a, b = self.dealt(a, 0.0), self.dealt(b, 0.0)
        total = np.zeros(a.shape[:-1], np.float32)
        for i in range(a.shape[-1]):
            total = fma(a[..., i], b[..., i], total)
        return total


@dataclass(frozen=True)
class Groups:
    """Neighbours added in groups of `size`; None makes one group of all. A last group that is short counts as zeros.

    `simdgroup`: the group is a simdgroup and the addition MLX's simd_sum, which adds bfloats in float32 and rounds the
    sum once (bf16_math.h).
    """

    size: int | None
    combination: Combination
    simdgroup: bool = False

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """[..., ceil(n / size)]."""
        if self.simdgroup and values.dtype == BFLOAT16:
            return replace(self, simdgroup=False)(values.astype(np.float32)).astype(BFLOAT16)
        n = values.shape[-1]
        size = n if self.size is None else self.size
        groups = -(-n // size)
        padded = np.zeros((*values.shape[:-1], groups * size), values.dtype)
        padded[..., :n] = values
        return _COMBINE[self.combination](padded.reshape(*values.shape[:-1], groups, size))


@dataclass(frozen=True)
class Rows:
    """Contiguous rows of `size` numbers, each added up by steps of its own."""

    size: int
    steps: tuple[Lanes | Groups, ...]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """[..., ceil(n / size)]."""
        rows = Lanes(-(-values.shape[-1] // self.size), contiguous=True).dealt(values, -0.0)
        for step in self.steps:
            rows = step(rows)
        return np.asarray(rows[..., 0])


Step = Lanes | Groups | Rows


@dataclass(frozen=True)
class Tree:
    """An order of additions with a name; `fused`: products are added without being rounded first."""

    name: str
    steps: tuple[Step, ...]
    fused: bool = False

    def total(self, *operands: np.ndarray) -> np.ndarray:
        """[...]: the sum of f32, f16 or bf16 values [..., n] in their own dtype, or of the products of two arrays.

        ValueError: steps that leave more than one number, or fused ones that do not begin with lanes.
        """
        return finished(self.steps[1:], begun(self.steps[0], operands, self.fused))


def begun(step: Step, operands: Sequence[np.ndarray], fused: bool) -> np.ndarray:
    """What the first step makes of values, or of two arrays of factors."""
    with np.errstate(all="ignore"):
        if not fused:
            return step(operands[0] if len(operands) == 1 else operands[0] * operands[1])
        if not isinstance(step, Lanes):
            raise ValueError(f"Expected lanes as the first step of a fused tree but got {step}")
        return step.fused(*operands)


def finished(steps: Sequence[Step], values: np.ndarray) -> np.ndarray:
    """The sum that the other steps make of what the first one left."""
    with np.errstate(all="ignore"):
        for step in steps:
            values = step(values)
    if values.shape[-1] != 1:
        raise ValueError(f"Expected steps that leave one number but {described(steps)} leave {values.shape[-1]}")
    return np.asarray(values[..., 0])


def _sequential(values: np.ndarray) -> np.ndarray:
    """From zero: only a sum of nothing but negative zeros shows the difference."""
    if values.dtype == BFLOAT16:
        total = np.zeros(values.shape[:-1], values.dtype)
        for i in range(values.shape[-1]):
            total = total + values[..., i]
        return total
    return np.asarray(np.add.accumulate(values, axis=-1, dtype=values.dtype)[..., -1] + values.dtype.type(0))


def _reverse(values: np.ndarray) -> np.ndarray:
    return _sequential(values[..., ::-1])


def _halves(values: np.ndarray) -> np.ndarray:
    half = values.shape[-1] // 2
    if not half:
        return np.asarray(values[..., 0])
    return np.asarray(_halves(values[..., :half]) + _halves(values[..., half:]))


def _numpy(values: np.ndarray) -> np.ndarray:
    """Along an axis that lies in one piece NumPy adds in halves; along any other, one after the other."""
    return np.asarray(np.add.reduce(np.ascontiguousarray(values), axis=-1, dtype=values.dtype))


def _power_of_two(values: np.ndarray) -> np.ndarray:
    n = values.shape[-1]
    padded = np.zeros((*values.shape[:-1], 1 << (n - 1).bit_length()), values.dtype)
    padded[..., :n] = values
    return padded


def _ascending(values: np.ndarray) -> np.ndarray:
    values = _power_of_two(values)
    while values.shape[-1] > 1:
        values = values[..., 0::2] + values[..., 1::2]
    return np.asarray(values[..., 0])


def _descending(values: np.ndarray) -> np.ndarray:
    values = _power_of_two(values)
    while (half := values.shape[-1] // 2) >= 1:
        values = values[..., :half] + values[..., half:]
    return np.asarray(values[..., 0])


_COMBINE: dict[Combination, Callable[[np.ndarray], np.ndarray]] = {
    "sequential": _sequential,
    "reverse": _reverse,
    "halves": _halves,
    "numpy": _numpy,
    "ascending-butterfly": _ascending,
    "descending-butterfly": _descending,
}


def same_bits(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """bool [...]: equal encodings, any NaN for any other."""
    both_nan = (one != one) & (other != other)
    return np.asarray((encodings(one) == encodings(other)) | both_nan)


def described(steps: Sequence[Step]) -> str:
    """The steps in words."""
    parts = []
    for step in steps:
        if isinstance(step, Groups):
            parts.append(f"{'all' if step.size is None else f'groups of {step.size}'} {step.combination}")
        elif isinstance(step, Rows):
            parts.append(f"rows of {step.size} ({described(step.steps)})")
        elif step.count == 1:
            parts.append("one after the other")
        else:
            dealt = "contiguous" if step.contiguous else f"strided by {step.block}" if step.block > 1 else "strided"
            parts.append(f"{step.count} {dealt} lanes")
    return ", then ".join(parts)
