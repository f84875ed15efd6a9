"""The pool: arrays of a file by name, each content once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mlx_assay.fixtures.tensor import DTYPES


class Pool:
    """Arrays under names; content that is there already keeps the name under which it came first."""

    def __init__(self, tensors: Mapping[str, np.ndarray] | None = None) -> None:
        self.tensors = dict(tensors or {})
        self._names: dict[bytes, str] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays together."""
        return sum(array.nbytes for array in self.tensors.values())

    def add(self, name: str, array: np.ndarray) -> str:
        """Keeps an array of any dtype; the name under which its bytes are found."""
        data = np.ascontiguousarray(array)
        key = hashlib.sha256(data.reshape(-1).view(np.uint8).data).digest()
        if key not in self._names:
            self._names[key] = name
            known = data.dtype in DTYPES.values()
            self.tensors[name] = data if known else data.reshape(-1).view(np.uint8)
        return self._names[key]

    def array(self, name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray:
        """The bytes under a name as an array; ValueError where there are none, or another number of them."""
        if name not in self.tensors:
            raise ValueError(f"Expected a tensor {name!r} but the file has none of that name")
        data = self.tensors[name].reshape(-1).view(np.uint8)
        need = dtype.itemsize
        for extent in shape:
            need *= extent
        if need != data.nbytes:
            raise ValueError(f"Expected {need} bytes for {dtype}{list(shape)} but tensor {name!r} has {data.nbytes}")
        return data.view(dtype).reshape(tuple(shape))

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)
