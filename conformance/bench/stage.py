"""The arguments of calls in the measuring process: windows of content, in objects that stay the same for every queue.

Everything used here is bound before the implementation is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.conformance.bench.digest import on_device
from mlx_assay.conformance.bench.message import Load, Region
from mlx_assay.conformance.bench.queue import key
from mlx_assay.conformance.process.arena import read
from mlx_assay.conformance.process.protocol import PlainArgument
from mlx_assay.fixtures.tensor import DTYPES

_core: Any = mx
_array, _eval = _core.array, _core.eval
_view, _reshape, _getitem, _assign = _array.view, _array.reshape, _array.__getitem__, _array.__setitem__
_zeros = _core.zeros
_types = {name: getattr(_core, name, None) for name in DTYPES}
_unsigned = {1: _core.uint8, 2: _core.uint16, 4: _core.uint32, 8: _core.uint64}
_export = getattr(_core, "export_to_dot", None)
_empty, _copyto, _slice, _read, _on_device = np.empty, np.copyto, slice, read, on_device


class Memory:
    """A text file that keeps what is written: where MLX draws its graphs."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        """Keeps a part."""
        self.parts.append(text)
        return len(text)


class Stage:
    """The content of one benchmark, and objects that show windows of it.

    MLX arrays are rebound to unevaluated windows, NumPy arrays get other content in place: so an object, an address, a
    shape tell nothing about what a call is asked.
    """

    def __init__(self, arena: int, load: Load) -> None:
        self.load = load
        self._flat = [_loaded(arena, region) for region in load.regions]
        self._device: dict[int, Any] = {}
        self._torch: dict[int, Any] = {}
        self._held: dict[tuple[int, int], Any] = {}
        self._plain = [PlainArgument(value.type, value.text).value for value in load.values]
        self._bound: list[Any] = []
        self._host: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}
        self._digests: dict[int, list[int]] = {}
        self._key = key()

    def warm(self) -> None:
        """Makes the device's copies, and touches them."""
        for index, region in enumerate(self.load.regions):
            if region.kind == "mx":
                _eval(self._on_device(index).sum())

    def mlx(self, windows: Sequence[Sequence[int]]) -> list[list[Any]]:
        """The arguments of calls as an implementation gets them; windows of MLX arrays are not evaluated."""
        self._bound = []
        return [self._call(call, places, self._mlx_window) for call, places in enumerate(windows)]

    def torch(self, windows: Sequence[Sequence[int]]) -> list[list[Any]]:
        """The same as torch arrays on the GPU, windows of one copy."""
        return [self._call(call, places, self._torch_window) for call, places in enumerate(windows)]

    def untouched(self) -> bool:
        """Whether no window that was bound last has been evaluated: nobody has worked with it."""
        if _export is None or not self._bound:
            return False
        memory = Memory()
        _export(memory, *self._bound)
        return "".join(memory.parts).count('label ="Slice"') == len(self._bound)

    def changed(self) -> list[int]:
        """Regions whose content on the device, or whose last windows in NumPy's arrays, are not what was loaded."""
        changed = {index for index in self._device if self._digest(index) != self._digests[index]}
        for (index, _), (held, content) in self._host.items():
            if held.tobytes() != content.tobytes():
                changed.add(index)
        return sorted(changed)

    def _digest(self, index: int) -> list[int]:
        words = _view(self._device[index], _unsigned[self._flat[index].dtype.itemsize])
        digest: list[int] = _on_device(_core, words, self._key).tolist()
        return digest

    def _call(self, call: int, places: Sequence[int], window: Any) -> list[Any]:
        return [window(index, call, places[index]) if array else self._plain[index] for array, index in self.load.order]

    def _mlx_window(self, index: int, call: int, first: int) -> Any:
        region = self.load.regions[index]
        size = _size(region)
        if region.kind != "mx":
            return self._host_window(index, call, first, size)
        part = _reshape(_getitem(self._on_device(index), _slice(first, first + size)), region.shape)
        held = self._held.get((index, call))
        if held is None:
            held = self._held[index, call] = _zeros(region.shape, _types[region.dtype])
        _assign(held, ..., part)
        self._bound.append(held)
        return held

    def _host_window(self, index: int, call: int, first: int, size: int) -> np.ndarray:
        region = self.load.regions[index]
        held = self._held.get((index, call))
        if held is None:
            held = self._held[index, call] = _empty(region.shape, self._flat[index].dtype)
        content = self._flat[index][first : first + size].reshape(region.shape)
        _copyto(held, content)
        self._host[index, call] = held, content
        return held

    def _torch_window(self, index: int, call: int, first: int) -> Any:
        import torch

        region = self.load.regions[index]
        if index not in self._torch:
            flat = self._flat[index]
            plain = torch.from_numpy(flat.view(f"i{flat.dtype.itemsize}")).cuda()
            self._torch[index] = plain.view(getattr(torch, region.dtype.replace("uint", "int")))
        return self._torch[index][first : first + _size(region)].view(region.shape)

    def _on_device(self, index: int) -> Any:
        if index not in self._device:
            flat, region = self._flat[index], self.load.regions[index]
            bits = _array(flat.view(f"u{flat.dtype.itemsize}"))
            self._device[index] = _view(bits, _types[region.dtype])
            _eval(self._device[index])
            self._digests[index] = self._digest(index)
        return self._device[index]


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
