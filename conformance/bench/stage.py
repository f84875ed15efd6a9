"""The arguments of calls in the measuring process: fresh content in objects that stay the same for every queue.

Everything used here is bound before the implementation is imported.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.conformance.bench.content import NEAR
from mlx_assay.conformance.bench.message import Load, Region
from mlx_assay.conformance.bench.queue import key, on_device
from mlx_assay.conformance.process.arena import read
from mlx_assay.conformance.process.protocol import PlainArgument
from mlx_assay.fixtures.tensor import DTYPES

_core: Any = mx
_array, _eval, _or, _zeros, _squeeze = _core.array, _core.eval, _core.bitwise_or, _core.zeros, _core.squeeze
_view, _reshape, _getitem, _assign = _array.view, _array.reshape, _array.__getitem__, _array.__setitem__
_types = {name: getattr(_core, name, None) for name in DTYPES}
_unsigned = {1: _core.uint8, 2: _core.uint16, 4: _core.uint32, 8: _core.uint64}
_export = getattr(_core, "export_to_dot", None)
_empty, _copyto, _slice, _read, _enumerate = np.empty, np.copyto, slice, read, enumerate
_on_device, _key = on_device, key


class Drawing:
    """A text file that keeps what is written: where MLX draws its graphs."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        """Keeps a part."""
        self.parts.append(text)
        return len(text)


class Stage:
    """The content of one benchmark, and objects that show parts of it.

    Objects stay for every queue and are bound to other content: an MLX array to a copy that has memory of its own, or,
    `near`, to a window of one copy that stays in the cache; NumPy's are written. So an object, an address, a shape tell
    nothing about what a call is asked. Arrays of `watched` calls lose an axis that nobody has evaluated: who works
    during the call evaluates it.
    """

    def __init__(self, arena: int, load: Load) -> None:
        self.load = load
        self._flat = [_loaded(arena, region) for region in load.regions]
        self._device: dict[int, Any] = {}
        self._torch: dict[int, Any] = {}
        self._held: dict[tuple[int, int], Any] = {}
        self._plain = [PlainArgument(value.type, value.text).value for value in load.values]
        self._pending: list[Any] = []
        self._nodes = 0
        self._windows: Sequence[Sequence[int]] = []

    def mlx(self, windows: Sequence[Sequence[int]], near: bool, watched: Collection[int] = ()) -> list[list[Any]]:
        """The arguments of calls as an implementation gets them."""
        self._windows = windows
        self._pending = []
        columns = [self._column(index, windows, near, watched) for index in range(len(self.load.regions))]
        self._nodes = self._counted()
        return [
            [columns[index][call] if array else self._plain[index] for array, index in self.load.order]
            for call in range(len(windows))
        ]

    def torch(self, windows: Sequence[Sequence[int]], near: bool) -> list[list[Any]]:
        """The same as torch arrays on the GPU."""
        columns = [self._torch_column(index, windows, near) for index in range(len(self.load.regions))]
        return [
            [columns[index][call] if array else self._plain[index] for array, index in self.load.order]
            for call in range(len(windows))
        ]

    def untouched(self) -> bool:
        """Whether no watched array has been evaluated: nobody has worked with it."""
        return self._nodes > 0 and self._counted() == self._nodes

    def _counted(self) -> int:
        """How many operations of the watched arrays nobody has done."""
        if _export is None or not self._pending:
            return 0
        drawing = Drawing()
        _export(drawing, *self._pending)
        return "".join(drawing.parts).count("label =")

    def changed(self, calls: Collection[int]) -> list[int]:
        """Regions whose content, as these calls' objects show it by now, is not what they were given."""
        drawn, found = _key(), set()
        for index, region in enumerate(self.load.regions):
            for call in calls:
                held, want = self._held[index, call], self._host(index, self._windows[call][index])
                if region.kind != "mx":
                    same = held.tobytes() == want.tobytes()
                else:
                    words, bits = _array(want.view(f"u{want.itemsize}")), _unsigned[want.itemsize]
                    same = _on_device(_view(held, bits), drawn) == _on_device(words, drawn)
                if not same:
                    found.add(index)
        return sorted(found)

    def _column(self, index: int, windows: Sequence[Sequence[int]], near: bool, watched: Collection[int]) -> list[Any]:
        """One argument of every call."""
        region = self.load.regions[index]
        firsts = [places[index] for places in windows]
        if region.kind != "mx":
            return [self._host_held(index, call, first) for call, first in enumerate(firsts)]
        parts = self._near(index, firsts) if near else self._apart(index, firsts)
        _eval(parts)
        shown = [_squeeze(part, 0) for part in parts]
        _eval([each for call, each in _enumerate(shown) if call not in watched])
        column = []
        for call, each in _enumerate(shown):
            held = self._held.get((index, call))
            if held is None:
                held = self._held[index, call] = _zeros(region.shape, _types[region.dtype])
            _assign(held, ..., each)
            column.append(held)
            if call in watched:
                self._pending.append(held)
        _eval([held for call, held in _enumerate(column) if call not in watched])
        return column

    def _apart(self, index: int, firsts: Sequence[int]) -> list[Any]:
        """Copies, each in memory of its own and with one axis more than is wanted."""
        region = self.load.regions[index]
        return [_reshape(self._copied(index, first, _size(region)), (1, *region.shape)) for first in firsts]

    def _near(self, index: int, firsts: Sequence[int]) -> list[Any]:
        """Windows of one copy, again and again the same ones."""
        region = self.load.regions[index]
        size, least = _size(region), min(firsts)
        base = self._copied(index, least, size + max(firsts) - least)
        _eval(base)
        starts = [first - least for first in firsts]
        return [_reshape(_getitem(base, _slice(start, start + size)), (1, *region.shape)) for start in starts]

    def _copied(self, index: int, first: int, size: int) -> Any:
        """[size] in the region's dtype, in new memory."""
        region, itemsize = self.load.regions[index], self._flat[index].itemsize
        if index not in self._device:
            self._device[index] = _array(self._flat[index].view(f"u{itemsize}"))
            _eval(self._device[index])
        bits = _or(_getitem(self._device[index], _slice(first, first + size)), _array(0, _unsigned[itemsize]))
        return _view(bits, _types[region.dtype])

    def _host(self, index: int, first: int) -> np.ndarray:
        region = self.load.regions[index]
        return self._flat[index][first : first + _size(region)].reshape(region.shape)

    def _host_held(self, index: int, call: int, first: int) -> np.ndarray:
        held: np.ndarray | None = self._held.get((index, call))
        if held is None:
            held = self._held[index, call] = _empty(tuple(self.load.regions[index].shape), self._flat[index].dtype)
        _copyto(held, self._host(index, first))
        return held

    def _torch_column(self, index: int, windows: Sequence[Sequence[int]], near: bool) -> list[Any]:
        import torch

        region = self.load.regions[index]
        if index not in self._torch:
            flat = self._flat[index]
            plain = torch.from_numpy(flat.view(f"i{flat.dtype.itemsize}")).cuda()
            self._torch[index] = plain.view(getattr(torch, region.dtype.replace("uint", "int")))
        size, shape = _size(region), region.shape
        parts = [self._torch[index][places[index] : places[index] + size].view(shape) for places in windows]
        return [parts[call % NEAR] for call in range(len(parts))] if near else [part.clone() for part in parts]


def _size(region: Region) -> int:
    size = 1
    for extent in region.shape:
        size *= extent
    return size


def _loaded(arena: int, region: Region) -> np.ndarray:
    flat = _empty(region.count, DTYPES[region.dtype])
    if not _read(arena, flat, region.offset):
        raise SystemExit("the arena ended before its content")
    return flat
