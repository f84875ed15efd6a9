"""The content of a benchmark: flat arrays, of which every call of every queue sees another window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""Bytes by which windows that lie in the same place differ; a multiple of every alignment that kernels ask for."""

PERIOD = 8_388_593
"""Elements after which content begins again. A prime, so that no two windows, whose places are even, have the same."""

MOST_WINDOWS = 1_000_000

Windows = Sequence[int]
"""Where one call's window begins in each array, in elements."""


class Content:
    """Arrays for one benchmark and one rotation.

    With `pool` bytes, windows follow each other through arrays of so many bytes together, so that what one call reads
    is long gone from a smaller cache when it is read again. With `pool` 0 all `windows` of them lie in one place, apart
    by STEP each.
    """

    def __init__(self, asked: Asked, parameters: Sequence[str], pool: int, windows: int, seed: int = 0) -> None:
        self._asked = asked
        self._parameters = parameters
        arguments = asked.arguments
        self._inputs = {name: one for name, one in arguments.items() if isinstance(one, Input)}
        self._plain = {name: one for name, one in arguments.items() if not isinstance(one, Input)}
        self._wide = pool > 0
        draw = Draw(Case.make(asked.operation, asked.dtype, "bench", {**asked.shape, "seed": seed}).digest)
        one_call = sum(_bytes(one) for one in self._inputs.values())
        self.flat = {
            name: _filled(one, draw, _count(one, pool * _bytes(one) // one_call if one_call else 0, windows))
            for name, one in self._inputs.items()
        }
        self._given: set[tuple[int, ...]] = set()
        self._turn = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(flat.nbytes for flat in self.flat.values())

    def next(self) -> list[int]:
        """A window that no call has seen."""
        while True:
            places = [self._place(name) for name in self._inputs]
            self._turn += 1
            if self._turn > MOST_WINDOWS:
                raise ValueError(
                    f"Expected windows up to {MOST_WINDOWS} but more were asked for: fewer calls or rounds"
                )
            if tuple(places) not in self._given:
                self._given.add(tuple(places))
                return places

    def _place(self, name: str) -> int:
        one, flat = self._inputs[name], self.flat[name]
        step = _step(one)
        room = (flat.size - one.size) // step
        if room <= 0:
            return 0
        stride = one.size // step + 1 if self._wide else 1
        return self._turn * stride % (room + 1) * step

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


def uploads(arguments: Mapping[str, Any]) -> int:
    """Bytes of a call's arguments."""
    return sum(value.nbytes for value in arguments.values() if isinstance(value, np.ndarray))


def _filled(one: Input, draw: Draw, count: int) -> np.ndarray:
    drawn = one.fill(draw, one.dtype, min(count, PERIOD))
    return drawn if count <= PERIOD else np.resize(drawn, count)


def _bytes(one: Input) -> int:
    return one.size * DTYPES[one.dtype].itemsize


def _step(one: Input) -> int:
    return STEP // DTYPES[one.dtype].itemsize


def _count(one: Input, pool: int, windows: int) -> int:
    """Elements of an array; room for a second window at least where windows follow each other."""
    least = one.size + windows * _step(one)
    return max(least, 2 * one.size, pool // DTYPES[one.dtype].itemsize) if pool else least
