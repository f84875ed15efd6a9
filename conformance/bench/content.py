"""The content of a benchmark: flat arrays, of which every call of every queue sees another window."""

from __future__ import annotations

import os
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
"""Elements over which the windows of one region are spread, or as many as a window has where that is less."""
AIM, SMALL_AIM = 1 << 26, 1 << 21
"""Elements of an array, where there is room, so that it has many regions, and of one with small windows."""
ENOUGH = 64
"""Windows of elements that are enough where windows are small: half as many regions, and the room around them."""
PART = 1 << 23
"""Elements that are drawn at a time."""
LARGEST, SHARE = 1 << 30, 64
"""Bytes of one array at most, where one window does not have more, and the share of any memory that it may take."""

NEAR = 64
"""Windows of one place: 8 KiB beside one input, of which MLX's contiguous makes no copy (up to 16 KiB)."""

Windows = Sequence[int]
"""Where one call's window begins in each array, in elements."""


class Content:
    """Arrays for one benchmark, in which `windows` begin at places far apart, each array's in an order of its own.

    An array has regions that share nothing, and no two windows in succession lie in one region: where `room`, bytes of
    each array, or `aim`, elements, allow no more than one, they overlap at a distance that is drawn. `near`: the
    windows of one queue, NEAR at most, lie within 8 KiB, those of different queues far apart.
    """

    def __init__(
        self,
        asked: Asked,
        parameters: Sequence[str],
        windows: int,
        seed: int = 0,
        near: bool = False,
        *,
        room: int = LARGEST,
        aim: int = AIM,
    ) -> None:
        self._parameters = parameters
        arguments = asked.arguments
        self._inputs = {name: one for name, one in arguments.items() if isinstance(one, Input)}
        self._plain = {name: one for name, one in arguments.items() if not isinstance(one, Input)}
        draw = Draw(Case.make(asked.operation, asked.dtype, "bench", {**asked.shape, "seed": seed}).digest)
        self._group = NEAR if near else 1
        groups = -(-windows // self._group)
        self._left = groups * self._group
        orders = {
            name: _places(one, groups, self._group, aim, room // DTYPES[one.dtype].itemsize, draw)
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


def spare(memory: int) -> int:
    """Bytes that one array may have on a device of so much memory, and on this machine."""
    return min(LARGEST, memory // SHARE, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // SHARE)


def _step(one: Input) -> int:
    return STEP // DTYPES[one.dtype].itemsize


def _places(one: Input, groups: int, group: int, aim: int, room: int, draw: Draw) -> np.ndarray:
    """Where windows begin, in the order of calls: groups far apart in a drawn order, and those of each in another."""
    size, step = one.size, _step(one)
    regions, apart = _regions(size, groups, group, step, min(aim, room, max(SMALL_AIM, ENOUGH * size)), room)
    slots = -(-groups // regions)
    span = slots * apart * step
    region = _in_turn(regions, slots, draw)[:groups]
    slot = np.empty(groups, np.int64)
    for each in range(regions):
        slot[region == each] = draw.permutation(slots)[: int((region == each).sum())]
    first = region * (size + span) + (slot * apart + draw.integers(0, apart - group + 1, (groups,))) * step
    within = np.concatenate([draw.permutation(group) for _ in range(groups)]) * step
    places: np.ndarray = np.repeat(first, group) + within
    return places


def _regions(size: int, groups: int, group: int, step: int, aim: int, room: int) -> tuple[int, int]:
    """How many regions there are, and how many steps of one each group of windows has to itself."""
    spread = min(SPREAD, size)
    for regions in (min(groups, aim // (size + spread)), 2):
        slots = -(-groups // max(regions, 1))
        apart = max(group, spread // step // slots)
        taken = regions * (size + slots * apart * step)
        if regions > 1 and taken <= (aim if regions > 2 else room):
            return regions, apart
    return 1, max(group, SPREAD // step // groups)


def _in_turn(regions: int, turns: int, draw: Draw) -> np.ndarray:
    """Each region once a turn, in a drawn order; none follows itself."""
    order: list[int] = []
    for _ in range(turns):
        turn = draw.permutation(regions).tolist()
        if order and turn[0] == order[-1] and regions > 1:
            turn.append(turn.pop(0))
        order += turn
    return np.array(order, np.int64)


def _filled(one: Input, draw: Draw, count: int) -> np.ndarray:
    flat = np.empty(count, DTYPES[one.dtype])
    for start in range(0, count, PART):
        flat[start : start + PART] = one.fill(draw, one.dtype, min(PART, count - start))
    return flat
