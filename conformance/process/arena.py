"""The file through which tensors travel between the judge and the process of an implementation."""

from __future__ import annotations

import os
import tempfile

import numpy as np

ALIGNMENT = 64


def aligned(size: int) -> int:
    """`size` rounded up so that what follows it is aligned."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def create() -> int:
    """A nameless file in memory where the system has such a thing, else an unlinked temporary file; its descriptor."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("mlx-assay")
    descriptor, name = tempfile.mkstemp(prefix="mlx-assay-")
    os.unlink(name)
    return descriptor


def plain_bytes(array: np.ndarray) -> memoryview:
    """The bytes of a row-contiguous array, without a copy."""
    return array.reshape(-1).view(np.uint8).data


def write(descriptor: int, array: np.ndarray, offset: int) -> None:
    """Puts the bytes of a row-contiguous array at an offset; the file grows as needed."""
    data = plain_bytes(array)
    while len(data):
        count = os.pwrite(descriptor, data, offset)
        data, offset = data[count:], offset + count


def read(descriptor: int, array: np.ndarray, offset: int) -> bool:
    """Fills a row-contiguous array from an offset; False if the file ends before.

    The judge reads rather than maps: another process that truncates a mapped file kills whoever touches it.
    """
    data = plain_bytes(array)
    while len(data):
        count = os.preadv(descriptor, [data], offset)
        if count <= 0:
            return False
        data, offset = data[count:], offset + count
    return True


def empty(descriptor: int) -> None:
    """Gives the file's storage back; it grows again with the next write."""
    os.ftruncate(descriptor, 0)
