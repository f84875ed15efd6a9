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
"""Elements that NumPy works on at a time, so that they stay in a core's cache."""
PIECE = 1 << 22
"""Elements that a GPU works on at a time: 64 MiB of memory, and work enough for every core."""


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


class OnDevice:
    """The same of MLX arrays of unsigned integers, worked out where they are; `mx` is mlx.core.

    On a GPU in pieces, by one kernel and two sums each, so that next to no memory is taken; on a CPU by NumPy. All that
    it needs is bound when it is made, and its kernel is traced and compiled by `ready`: before an implementation is
    there that could replace something.
    """

    def __init__(self, mx: Any, compiled: bool | None = None) -> None:
        self._compiled = mx.default_device() != mx.Device(mx.cpu) if compiled is None else compiled
        self._array, self._eval, self._uint32 = mx.array, mx.eval, mx.uint32
        self._view = (mx.array.reshape, mx.array.__getitem__, mx.array.astype)
        self._tolist, self._size = mx.array.tolist, mx.array.size.fget
        self._host, self._asarray, self._slice = digest, np.asarray, slice
        if self._compiled:
            self._sums = mx.compile(self._traced, shapeless=True)
            self._places = mx.arange(PIECE, dtype=mx.uint32) * self._word(_SPREAD)

    def ready(self) -> None:
        """Traces and compiles what digests are made by."""
        for count in (1, 2):
            self(self._array(np.arange(count, dtype=np.uint32)), (0, 0))

    def __call__(self, words: Any, key: Key) -> tuple[int, int]:
        """The digest of an array of 1-, 2- or 4-byte unsigned integers, which is evaluated."""
        if not self._compiled:
            return self._host(self._asarray(words), key)
        reshape, part, astype = self._view
        flat, halves = reshape(words, -1), [self._word(half) for half in key]
        sums = [0, 0]
        for start in range(0, self._size(flat), PIECE):
            piece = astype(part(flat, self._slice(start, start + PIECE)), self._uint32)
            places = part(self._places, self._slice(0, self._size(piece)))
            found = self._sums(piece, places, self._word(start * _SPREAD % 2**32), *halves)
            # Not all pieces at once: each has memory of its own until it is done.
            self._eval(found)
            sums = [(total + self._tolist(each)) % 2**32 for total, each in zip(sums, found, strict=True)]
        return sums[0], sums[1]

    def _word(self, value: int) -> Any:
        return self._array(value, self._uint32)

    def _traced(self, words: Any, places: Any, start: Any, *halves: Any) -> list[Any]:
        return [_sum(words, places + start, half, self._word) for half in halves]


def _sum(words: Any, places: Any, half: int, constant: Any) -> Any:
    mixed = _mixed(words ^ _mixed(places ^ constant(half), constant), constant)
    return mixed.sum(dtype=np.uint32) if isinstance(mixed, np.ndarray) else mixed.sum()


def _mixed(words: Any, constant: Any) -> Any:
    words = (words ^ (words >> constant(16))) * constant(_FIRST)
    words = (words ^ (words >> constant(13))) * constant(_SECOND)
    return words ^ (words >> constant(16))
