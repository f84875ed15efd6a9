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
"""Bytes by which windows lie apart at least; a multiple of every alignment that kernels ask for."""
SPREAD = 1 << 20
"""Elements over which the windows of one array are spread where so many steps do not take more."""
PERIOD = 8_388_593
"""Elements after which content begins again. A prime, so that no two windows, whose places are even, have the same."""

NEAR = 64
"""Windows of one place: 8 KiB beside one input, of which MLX's contiguous makes no copy (up to 16 KiB)."""

Windows = Sequence[int]
"""Where one call's window begins in each array, in elements."""


class Content:
    """Arrays for one benchmark, in which `windows` begin at places far apart, each array's in an order of its own.

    `near`: the windows of one queue, NEAR at most, lie within 8 KiB, those of different queues far apart.
    """

    def __init__(
        self, asked: Asked, parameters: Sequence[str], windows: int, seed: int = 0, near: bool = False
    ) -> None:
        self._parameters = parameters
        arguments = asked.arguments
        self._inputs = {name: one for name, one in arguments.items() if isinstance(one, Input)}
        self._plain = {name: one for name, one in arguments.items() if not isinstance(one, Input)}
        draw = Draw(Case.make(asked.operation, asked.dtype, "bench", {**asked.shape, "seed": seed}).digest)
        self._group = NEAR if near else 1
        self._left = -(-windows // self._group) * self._group
        orders = {
            name: _places(self._left // self._group, self._group, _step(one), draw)
            for name, one in self._inputs.items()
        }
        self.flat = {
            name: _filled(one, draw, one.size + int(orders[name].max()) + _step(one))
            for name, one in self._inputs.items()
        }
        self._places = [orders[name].tolist() for name in self._inputs]
        self._turn = 0

    def next(self) -> list[int]:
        """A window that no call has seen. ValueError: so many were not asked for."""
        if self._turn >= self._left:
            raise ValueError(f"Expected {self._left} windows at most but more were asked for")
        places = [order[self._turn] for order in self._places]
        self._turn += 1
        return places

    def queue(self, count: int) -> list[list[int]]:
        """Those of so many calls of a queue. ValueError: more than were asked for, or than lie near each other."""
        if self._group > 1:
            if count > self._group:
                raise ValueError(f"Expected {self._group} windows of one place at most but got {count}")
            self._turn = -(-self._turn // self._group) * self._group
        return [self.next() for _ in range(count)]

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


def _places(groups: int, group: int, step: int, draw: Draw) -> np.ndarray:
    """Where windows begin, in the order of calls: groups far apart in a drawn order, and those of each in another."""
    apart = max(group, SPREAD // step // groups)
    first = (draw.permutation(groups) * apart + draw.integers(0, apart - group + 1, (groups,))) * step
    within = np.concatenate([draw.permutation(group) for _ in range(groups)]) * step
    places: np.ndarray = np.repeat(first, group) + within
    return places


def _filled(one: Input, draw: Draw, count: int) -> np.ndarray:
    drawn = one.fill(draw, one.dtype, min(count, PERIOD))
    return drawn if count <= PERIOD else np.resize(drawn, count)
