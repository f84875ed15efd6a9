"""What comes of a question: the line that answers it, and the file that holds the output."""

from __future__ import annotations

import numpy as np

from mlx_assay.conformance.adapters import protocol
from mlx_assay.conformance.adapters.channel import Broken, shown
from mlx_assay.conformance.adapters.folder import Folder, NoOutput
from mlx_assay.fixtures import codec

HEADER_ROOM = 1 << 14
"""Bytes of an output's file beside its data."""


def answer(line: bytes) -> protocol.Answer:
    """An answer to `run`; Broken says what is wrong with the line."""
    try:
        return protocol.decode_answer(line)
    except (ValueError, RecursionError) as error:
        raise Broken("error", f"Expected the answer to `run` but got {shown(line)}: {error}") from None


def output(folder: Folder, name: str, capacity: int) -> np.ndarray:
    """The one tensor of a file whose data takes `capacity` bytes at most; NoOutput says what is there instead."""
    data = folder.read(name, capacity + HEADER_ROOM)
    try:
        tensors = codec.decode(data).tensors
    except ValueError as error:
        raise NoOutput(str(error)) from None
    if len(tensors) != 1:
        raise NoOutput(f"Expected one tensor in `out` but got {len(tensors)}")
    return next(iter(tensors.values()))
