"""What an implementation is handed, and what comes back from it, as plain bytes; runs in its process.

Everything used here is bound when this module is imported, before the implementation is: replacing `mx.eval`,
`mx.array.view`, a function of NumPy or of `os` afterwards changes nothing.
"""

from __future__ import annotations

import os
from typing import Any

import mlx.core as mx
import numpy as np

from mlx_assay.conformance.process.arena import read
from mlx_assay.conformance.process.protocol import Argument, Call, PlainArgument, Returned, TensorArgument
from mlx_assay.conformance.stopwatch import stage
from mlx_assay.fixtures.tensor import DTYPES, viewed
from mlx_assay.impl.executors.stage import GRAPHS

_core: Any = mx
_array = _core.array
_eval = _core.eval
_view = _array.view
_assign = _array.__setitem__
_shape_of = _array.shape.fget
_dtype_of = _array.dtype.fget
_nbytes_of = _array.nbytes.fget
_size_of: Any = type(_core.float32).size.fget
_dtype_name: Any = type(_core.float32).__repr__
_unsigned = {1: _core.uint8, 2: _core.uint16, 4: _core.uint32, 8: _core.uint64}
_plain = {size: np.dtype(f"u{size}") for size in _unsigned}
_types = {name: getattr(_core, name) for name in DTYPES}
_memoryview, _len, _type, _list, _str = memoryview, len, type, list, str
_class_name: Any = type.__dict__["__name__"].__get__
_contiguous, _empty, _full, _invert = np.ascontiguousarray, np.empty, np.full, np.bitwise_not
_from_buffer = np.frombuffer
_NARROWED = "float64"
_pwrite = os.pwrite
_viewed, _read = viewed, read
_stage = stage

PRIMED = 1 << 20
"""Largest output, in bytes, for which the allocator is primed."""


class ChangedInput(Exception):
    """An input has another shape or dtype than before the call."""


class Material:
    """The arguments and results of one case after another.

    Inputs of equal size lie on the same storage in turn, and of equal shape in the same Python object: host arrays in
    a buffer kept for their position, MLX's by giving one back before the next is made. So what is remembered by
    address or id is met with other content.
    """

    def __init__(self, arena: int, *, torch: bool = True) -> None:
        """Without `torch` its arrays are handed out as NumPy's."""
        self._arena = arena
        self._torch = torch
        self._buffers: dict[tuple[int, int], np.ndarray] = {}
        self._objects: dict[tuple[int, tuple[int, ...], Any], Any] = {}
        self._given: list[tuple[Any, int]] = []
        self._host: list[np.ndarray] = []
        self._output_bytes = 0

    def begin(self) -> None:
        """Forgets the storage of the previous case."""
        self._buffers.clear()
        self._objects.clear()
        self._output_bytes = 0

    def arguments(self, subcase: list[Argument]) -> list[Any]:
        """The arguments of one call; those of the call before must be gone by now."""
        self._given, self._host = [], []
        made: list[Any] = []
        for position, argument in enumerate(subcase):
            if isinstance(argument, PlainArgument):
                made.append(argument.value)
            else:
                made.append(self._tensor(position, argument))
        return made

    def _tensor(self, position: int, argument: TensorArgument) -> Any:
        dtype = DTYPES[argument.dtype]
        count = 1
        for extent in argument.shape:
            count *= extent
        size = count * dtype.itemsize
        buffer = self._buffers.get((position, size))
        if buffer is None:
            buffer = self._buffers[position, size] = _empty(size, dtype=np.uint8)
        if size and not _read(self._arena, buffer, argument.offset):
            raise SystemExit("the arena ended before its input")
        if argument.kind == "mx":
            return self._mlx_array(position, _mlx_base(buffer, dtype, argument), argument)
        self._given.append((buffer, size))
        self._host.append(buffer)
        array = _viewed(buffer.view(dtype).reshape(argument.shape), argument.steps, np)
        return _torch_array(array) if argument.kind == "torch" and self._torch else array

    def _mlx_array(self, position: int, base: Any, argument: TensorArgument) -> Any:
        """The view of `base`, in the object that held the last one of its shape; strides are kept."""
        array = _viewed(base, argument.steps, _core)
        if argument.steps:
            _eval(base, array)
        key = (position, _shape_of(array), _dtype_of(array))
        held = self._objects.get(key)
        if held is None:
            held = self._objects[key] = array
        else:
            _assign(held, ..., array)
            _eval(held)
        if argument.steps:
            self._given.append((base, _nbytes_of(base)))
        self._given.append((held, _nbytes_of(array)))
        return held

    def inputs_to_arena(self, offset: int) -> None:
        """Writes the inputs as they are now, one behind the other, to the arena: of a view, base and view.

        ChangedInput: one has another size.
        """
        for array, size in self._given:
            if (_nbytes_of(array) if _type(array) is _array else array.nbytes) != size:
                raise ChangedInput(
                    f"Expected an input of {size} bytes as before the call but it has {array.nbytes} now"
                )
            offset += put(self._arena, array, offset)

    def overwrite_host(self) -> None:
        """Gives every host array other content, as its owner may after the call."""
        for buffer in self._host:
            _invert(buffer, out=buffer)

    def prime(self, poison: int) -> None:
        """Leaves blocks of the last output's size, filled with the pattern, for MLX's allocator to find again.

        Best effort: which block an allocation gets is up to the allocator, and the C library keeps a few words of
        its own in a free block. Outputs of kernels are filled for certain, by the executor.
        """
        if 0 < self._output_bytes <= PRIMED:
            words = _full(-(-self._output_bytes // 4), poison, dtype=np.uint32)
            blocks = [_array(words) for _ in range(3)]
            del blocks

    def deliver(self, index: int, call: Call, result: Any) -> Returned:
        """Evaluates a result, and writes its bytes to the arena where it is a plain mx.array that fits."""
        if _type(result) is not _array:
            return Returned(index, _str(_class_name(_type(result)))[:200] or "?", "", [], False)
        with _stage("evaluation", GRAPHS):
            _eval(result)
        dtype, shape = _dtype_of(result), _list(_shape_of(result))
        size = _size_of(dtype)
        for extent in shape:
            size *= extent
        written = size <= call.capacity
        if written:
            put(self._arena, result, call.output)
            self._output_bytes = size
        return Returned(index, "", _dtype_name(dtype).removeprefix("mlx.core."), shape, written)


def _mlx_base(buffer: np.ndarray, dtype: np.dtype[Any], argument: TensorArgument) -> Any:
    """An evaluated array of these bits; a float64, which MLX would narrow, by way of a view, which is not evaluated."""
    if argument.dtype != _NARROWED:
        return _array(buffer.view(dtype).reshape(argument.shape))
    base = _view(_array(buffer.view(_plain[dtype.itemsize]).reshape(argument.shape)), _types[argument.dtype])
    _eval(base)
    return base


def put(arena: int, array: Any, offset: int) -> int:
    """Writes an array's bytes in C order to the arena; how many they are.

    A view in MLX costs a wait for its thread, so none is made where the array's own memory can be had.
    """
    data = _memoryview(array)
    size = data.nbytes
    if size == 0:
        return 0
    if not data.c_contiguous:
        if _type(array) is _array:
            data = _memoryview(_view(array, _unsigned[_size_of(_dtype_of(array))]))
        data = _memoryview(_contiguous(data).data)
    written = _pwrite(arena, data, offset)
    if written < size:
        octets = _from_buffer(data, np.uint8)
        while written < size:
            written += _pwrite(arena, octets[written:].data, offset + written)
    return size


def _torch_array(array: np.ndarray) -> Any:
    import torch

    if _str(array.dtype) == "bfloat16":
        return torch.from_numpy(array.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(array)
