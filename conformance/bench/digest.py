"""A digest of an output that the device can work out: 64 bits of its encodings under a key drawn afterwards.

Two sums over the elements, each encoding times an odd number that the key and its place decide, modulo 2^32. Whoever
does not know the key before the output exists cannot make another output with the same digest but by luck.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Key = tuple[int, int]
_SPREAD = 0x9E3779B1
_MIX = 0x85EBCA6B


def digest(array: np.ndarray, key: Key) -> tuple[int, int]:
    """Of an array of 1-, 2- or 4-byte elements, in C order."""
    words = array.reshape(-1).view(np.dtype(f"u{array.dtype.itemsize}")).astype(np.uint32)
    places = np.arange(words.size, dtype=np.uint32) * np.uint32(_SPREAD)
    first, second = (int((words * _factor(places, half)).sum(dtype=np.uint32)) for half in key)
    return first, second


def _factor(places: Any, half: int) -> Any:
    mixed = places ^ np.uint32(half)
    return ((mixed ^ (mixed >> np.uint32(15))) * np.uint32(_MIX)) | np.uint32(1)


def on_device(mx: Any, words: Any, key: Key) -> Any:
    """uint32 [2]: the same of an MLX array of unsigned integers, unevaluated; `mx` is mlx.core."""
    flat = words.reshape(-1).astype(mx.uint32)
    places = mx.arange(flat.size, dtype=mx.uint32) * _constant(mx, _SPREAD)
    sums = []
    for half in key:
        mixed = places ^ _constant(mx, half)
        factor = ((mixed ^ (mixed >> _constant(mx, 15))) * _constant(mx, _MIX)) | _constant(mx, 1)
        sums.append((flat * factor).sum())
    return mx.stack(sums)


def _constant(mx: Any, value: int) -> Any:
    return mx.array(value, mx.uint32)
