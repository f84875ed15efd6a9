"""The diagnosis of a sum: in which order were these numbers added, that exactly these bits came out?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlx_assay.oracles.accumulation import BFLOAT16, Step, Tree, begun, finished, same_bits
from mlx_assay.oracles.trees import known

PROBED = 4
"""Results on which every tree is tried; only those that hold there are tried on the rest."""


@dataclass(frozen=True)
class Candidate:
    """A tree, and in what it adds: the dtype of the numbers, or float32 and one rounding at the end."""

    tree: Tree
    wide: bool = False

    @property
    def name(self) -> str:
        """As a report shows it."""
        return f"{self.tree.name}, in float32" if self.wide else self.tree.name


class _Sums:
    """The results of candidates for the same numbers; what trees have in common is added once."""

    def __init__(self, operands: Sequence[np.ndarray], dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._operands = {False: operands, True: [operand.astype(np.float32) for operand in operands]}
        self._begun: dict[tuple[Step, bool, bool], np.ndarray] = {}

    def of(self, candidate: Candidate) -> np.ndarray:
        """[m] of the results' dtype, from values [m, n] or from two factors [m, n]."""
        first, *others = candidate.tree.steps
        key = (first, candidate.tree.fused, candidate.wide)
        if key not in self._begun:
            self._begun[key] = begun(first, self._operands[candidate.wide], candidate.tree.fused)
        with np.errstate(all="ignore"):
            return finished(others, self._begun[key]).astype(self._dtype)


@dataclass(frozen=True)
class Diagnosis:
    """What gives the bits of every result; where nothing does, what comes nearest, and how near."""

    matches: tuple[Candidate, ...]
    nearest: Candidate
    agreeing: int  # results whose bits the nearest gives
    results: int  # that were looked at for it


def diagnose(result: np.ndarray, *operands: np.ndarray) -> Diagnosis:
    """Holds results [m] against every known order of adding values [m, n], or the products of two factors [m, n].

    Results and operands are f32, f16 or bf16; half types are tried with sums of their own and with sums in float32.
    ValueError: shapes or dtypes that do not fit.
    """
    _check(result, operands)
    n, few = operands[0].shape[-1], min(PROBED, len(result))
    narrow = result.dtype != np.float32 or operands[0].dtype != np.float32
    candidates = []
    for tree in known(n, len(operands) == 2, operands[0].dtype == BFLOAT16):
        if operands[0].dtype == result.dtype and not (tree.fused and narrow):
            candidates.append(Candidate(tree))
        if narrow:
            candidates.append(Candidate(tree, wide=True))
    probed = _Sums([operand[:few] for operand in operands], result.dtype)
    scores = [_agreeing(probed.of(candidate), result[:few]) for candidate in candidates]
    rest = _Sums([operand[few:] for operand in operands], result.dtype)
    matches = tuple(
        candidate
        for candidate, score in zip(candidates, scores, strict=True)
        if score == few and (few == len(result) or _agreeing(rest.of(candidate), result[few:]) == len(result) - few)
    )
    best = max(range(len(candidates)), key=lambda place: scores[place])
    return Diagnosis(matches, matches[0] if matches else candidates[best], scores[best], few)


def _agreeing(total: np.ndarray, result: np.ndarray) -> int:
    return int(np.count_nonzero(same_bits(total, result)))


def _check(result: np.ndarray, operands: Sequence[np.ndarray]) -> None:
    known_dtypes = ("float32", "float16", "bfloat16")
    for array in (result, *operands):
        if str(array.dtype) not in known_dtypes:
            raise ValueError(f"Expected {', '.join(known_dtypes)} but got {array.dtype}")
    shapes = {operand.shape for operand in operands}
    if len(operands) not in (1, 2) or len(shapes) != 1 or operands[0].ndim != 2 or result.shape != shapes.pop()[:1]:
        raise ValueError(
            "Expected results [m] and values [m, n], or results [m] and two factors [m, n], but got "
            f"{list(result.shape)} and {', '.join(str(list(operand.shape)) for operand in operands)}"
        )
    if 0 in operands[0].shape:
        raise ValueError(f"Expected at least one result of one number but got values {list(operands[0].shape)}")
