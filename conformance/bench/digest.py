"""A digest of an output that the device can work out: 64 bits of its encodings under a key drawn afterwards.

Two sums modulo 2^32 over the elements, of each encoding mixed with a word that the key and its place decide. Whoever
does not know the key before the output exists cannot make another output with the same digest but by luck.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Key = tuple[int, int]
_SPREAD = 0x9E3779B1
_FIRST, _SECOND = 0x85EBCA6B, 0xC2B2AE35
"""The multipliers of MurmurHash3's finalizer, by which each bit of a word changes every other."""

CHUNK = 1 << 15
"""Elements that are worked on at a time, so that they stay in a core's cache."""


def digest(array: np.ndarray, key: Key) -> tuple[int, int]:
    """Of an array of 1-, 2- or 4-byte elements, in C order."""
    flat = array.reshape(-1).view(np.dtype(f"u{array.dtype.itemsize}"))
    sums = [0, 0]
    for start in range(0, flat.size, CHUNK):
        words = flat[start : start + CHUNK].astype(np.uint32)
        places = np.arange(start, start + words.size, dtype=np.uint32) * np.uint32(_SPREAD)
        for half in range(2):
            sums[half] += int(_sum(words, places, key[half], np.uint32))
    return sums[0] % 2**32, sums[1] % 2**32


def on_device(mx: Any, words: Any, key: Key) -> Any:
    """uint32 [2]: the same of an MLX array of unsigned integers, unevaluated; `mx` is mlx.core."""

    def constant(value: int) -> Any:
        return mx.array(value, mx.uint32)

    flat = words.reshape(-1).astype(mx.uint32)
    places = mx.arange(flat.size, dtype=mx.uint32) * constant(_SPREAD)
    return mx.stack([_sum(flat, places, half, constant) for half in key])


def _sum(words: Any, places: Any, half: int, constant: Any) -> Any:
    mixed = _mixed(words ^ _mixed(places ^ constant(half), constant), constant)
    return mixed.sum(dtype=np.uint32) if isinstance(mixed, np.ndarray) else mixed.sum()


def _mixed(words: Any, constant: Any) -> Any:
    words = (words ^ (words >> constant(16))) * constant(_FIRST)
    words = (words ^ (words >> constant(13))) * constant(_SECOND)
    return words ^ (words >> constant(16))
