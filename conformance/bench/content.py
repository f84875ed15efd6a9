"""The content of a benchmark: flat arrays, of which every call of every queue sees another window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlx_assay.conformance.bench.benchmark import Asked, Input
from mlx_assay.conformance.bench.message import Load, Region, Value
from mlx_assay.conformance.process import arena
from mlx_assay.conformance.process.protocol import PlainArgument
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.draw import Draw
from mlx_assay.fixtures.tensor import DTYPES

STEP = 128
"""Bytes by which neighbouring windows lie apart; a multiple of every alignment that kernels ask for."""
PERIOD = 8_388_593
"""Elements after which content begins again. A prime, so that no two windows, whose places are even, have the same."""

NEAR = 64
"""Windows of one place: 8 KiB beside one input, of which MLX's contiguous makes no copy (up to 16 KiB)."""

Windows = Sequence[int]
"""Where one call's window begins in each array, in elements."""


class Content:
    """Arrays for one benchmark, in which `windows` of them begin a step behind each other."""

    def __init__(self, asked: Asked, parameters: Sequence[str], windows: int, seed: int = 0) -> None:
        self._parameters = parameters
        arguments = asked.arguments
        self._inputs = {name: one for name, one in arguments.items() if isinstance(one, Input)}
        self._plain = {name: one for name, one in arguments.items() if not isinstance(one, Input)}
        draw = Draw(Case.make(asked.operation, asked.dtype, "bench", {**asked.shape, "seed": seed}).digest)
        self.flat = {name: _filled(one, draw, one.size + windows * _step(one)) for name, one in self._inputs.items()}
        self._left = windows
        self._turn = 0

    def next(self) -> list[int]:
        """A window that no call has seen. ValueError: so many were not asked for."""
        if self._turn >= self._left:
            raise ValueError(f"Expected {self._left} windows at most but more were asked for")
        places = [self._turn * _step(one) for one in self._inputs.values()]
        self._turn += 1
        return places

    def arguments(self, windows: Windows) -> dict[str, Any]:
        """The arguments of a call as oracles see them."""
        arrays = {
            name: self.flat[name][first : first + one.size].reshape(one.shape)
            for (name, one), first in zip(self._inputs.items(), windows, strict=True)
        }
        return {name: arrays.get(name, self._plain.get(name)) for name in self._parameters}

    def written(self, descriptor: int) -> tuple[Load, int]:
        """Puts the arrays into the arena; the order that loads them, and where the arena's rest begins."""
        regions, end = [], 0
        for name, one in self._inputs.items():
            flat = self.flat[name]
            arena.write(descriptor, flat, end)
            regions.append(Region(one.dtype, one.kind, list(one.shape), end, flat.size))
            end += arena.aligned(flat.nbytes)
        values = [PlainArgument.make(value) for value in self._plain.values()]
        arrays, plain = list(self._inputs), list(self._plain)
        order = [(name in arrays, (arrays if name in arrays else plain).index(name)) for name in self._parameters]
        return Load(regions, [Value(value.type, value.text) for value in values], order), end


def _step(one: Input) -> int:
    return STEP // DTYPES[one.dtype].itemsize


def _filled(one: Input, draw: Draw, count: int) -> np.ndarray:
    drawn = one.fill(draw, one.dtype, min(count, PERIOD))
    return drawn if count <= PERIOD else np.resize(drawn, count)
