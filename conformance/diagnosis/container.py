"""Files of tensors from anybody: safetensors and NumPy's npy, read as data and never run."""

from __future__ import annotations

import io
import math
import stat
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.lib import format as npy

from mlx_assay.fixtures.codec import ENCODINGS, decode

LARGEST = 1 << 30
"""Bytes of a file."""
NPY = b"\x93NUMPY"
HEADER_LIMIT = 1 << 16
ONLY = "array"
"""What the one tensor of an npy file is called."""
MORE: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "I16": np.dtype(np.int16),
    "U16": np.dtype(np.uint16),
    "U64": np.dtype(np.uint64),
}
"""The format's names of dtypes that fixtures do not have."""
VOID = np.dtype("V2")
"""As NumPy writes bfloat16, of which it knows no name."""


def read(path: Path) -> dict[str, np.ndarray]:
    """Tensors by name, row contiguous and of this machine's byte order. OSError, or ValueError that names the file."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: expected a regular file but got a folder, device, pipe or socket")
    if status.st_size > LARGEST:
        raise ValueError(f"{path}: expected {LARGEST} bytes at most but got {status.st_size}")
    data = path.read_bytes()
    try:
        if data.startswith(NPY):
            return {ONLY: _npy(data)}
        return decode(data, {**ENCODINGS, **MORE}).tensors
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected safetensors or npy but: {error}") from error


def _npy(data: bytes) -> np.ndarray:
    """One array; the header is a literal that NumPy parses, and objects are refused before anything is made of it."""
    file = io.BytesIO(data)
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"expected npy 1.0 or 2.0 but got {version[0]}.{version[1]}")
    reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    try:
        shape, fortran, stored = reader(file, max_header_size=HEADER_LIMIT)
    except Exception as error:  # what NumPy's parser of literals raises is not written down
        raise ValueError(f"its header cannot be read: {type(error).__name__}") from error
    dtype = np.dtype(ml_dtypes.bfloat16) if stored == VOID else stored.newbyteorder("=")
    if stored.hasobject or (stored != VOID and (stored.kind not in "biuf" or stored.itemsize > 8)):
        raise ValueError(f"expected numbers of at most 8 bytes but got dtype {stored}")
    if any(extent < 0 for extent in shape) or len(shape) > 32:
        raise ValueError(f"expected a shape of at most 32 axes from 0 up but got {list(shape)[:40]}")
    need, have = math.prod(shape) * stored.itemsize, len(data) - file.tell()
    if need != have:
        raise ValueError(f"expected {need} bytes for shape {list(shape)} but the file holds {have}")
    flat = np.frombuffer(data, stored, offset=file.tell())
    swapped = flat.view(dtype) if stored == VOID else flat.astype(dtype)
    return np.ascontiguousarray(swapped.reshape(shape, order="F" if fortran else "C"))
