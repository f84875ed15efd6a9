"""What the runtime is told of a counted launch, and what it tells: the layouts of runtime/counter.h."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlx_assay.impl.executors import objects
from mlx_assay.impl.executors.counting.compilation import CountedLibrary
from mlx_assay.impl.executors.counting.instrumentation import sides

DEVICE, CONSTANT = range(2)
SPACES = ("device", "constant", "threadgroup", "private", "elsewhere")
"""In the order of their numbers."""
_OPERATIONS = 64
TALLIES = ("requests", "lanes", "bytes", "useful", "sectors", "lines", "cycles", "conflicts", "serial")

Words = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True)
class Span:
    """Bytes that the kernel was given, or has as constants."""

    begin: int
    bytes: int
    space: int


def space(type_: str) -> int:
    """The address space of a parameter of this type."""
    return CONSTANT if "constant" in type_.split() else DEVICE


class _Extent(ctypes.Structure):
    _fields_ = (
        ("begin", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("space", ctypes.c_uint32),
        ("unused", ctypes.c_uint32),
        ("read", ctypes.c_void_p),
        ("written", ctypes.c_void_p),
    )


class _Operation(ctypes.Structure):
    _fields_ = (("requests", ctypes.c_uint64), ("lanes", ctypes.c_uint64))


class _Counter(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_uint32) for name in ("sites", "blocks", "extents", "unused")),
        *((name, ctypes.c_void_p) for name in ("site", "extent", "tally", "block_lanes", "block_requests")),
        ("operation", _Operation * _OPERATIONS),
        *((name, ctypes.c_uint64) for name in ("barriers", "barrier_simdgroups", "barrier_threads")),
        *((name, ctypes.c_uint64) for name in ("threads", "threadgroups", "simdgroups")),
        ("failed", ctypes.c_uint32),
    )


class Request:
    """The runtime's memory of one counted launch."""

    def __init__(self, library: CountedLibrary, spans: Sequence[Span]) -> None:
        meaning = library.meaning
        size = objects.runtime().assay_counter_bytes()
        self._held = ctypes.create_string_buffer(size + 64)
        self.address = -(-ctypes.addressof(self._held) // 64) * 64
        self.counter = _Counter.from_address(self.address)
        self._site = np.array([sides(s.kind) for s in meaning.sites] or [(0, 0)], np.uint32)
        self.tally: Words = np.zeros((max(len(meaning.sites), 1), len(SPACES), len(TALLIES)), np.uint64)
        self.block_lanes: Words = np.zeros(len(meaning.blocks), np.uint64)
        self.block_requests: Words = np.zeros(len(meaning.blocks), np.uint64)
        self.spans = spans
        self.marks = [(np.zeros(s.bytes // 64 + 2, np.uint64), np.zeros(s.bytes // 64 + 2, np.uint64)) for s in spans]
        self._extents = (_Extent * max(len(spans), 1))()
        for extent, span, (read, written) in zip(self._extents, spans, self.marks, strict=False):
            extent.begin, extent.bytes, extent.space = span.begin, span.bytes, span.space
            extent.read, extent.written = read.ctypes.data, written.ctypes.data
        c = self.counter
        c.sites, c.blocks, c.extents = len(meaning.sites), len(meaning.blocks), len(spans)
        c.site, c.extent, c.tally = self._site.ctypes.data, ctypes.addressof(self._extents), self.tally.ctypes.data
        c.block_lanes, c.block_requests = self.block_lanes.ctypes.data, self.block_requests.ctypes.data

    def operations(self) -> dict[int, tuple[int, int]]:
        """Requests and lanes of each kind of operation that occurred."""
        each = enumerate(self.counter.operation)
        return {kind: (o.requests, o.lanes) for kind, o in each if o.requests}
