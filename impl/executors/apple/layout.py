"""Where the runtime's structures have their fields."""

import ctypes
from typing import NamedTuple

POSITION = (
    "thread_position_in_grid",
    "thread_position_in_threadgroup",
    "threadgroup_position_in_grid",
    "threadgroups_per_grid",
    "threads_per_grid",
    "threads_per_threadgroup",
    "dispatch_threads_per_threadgroup",
    "thread_index_in_threadgroup",
    "thread_index_in_simdgroup",
    "simdgroup_index_in_threadgroup",
    "simdgroups_per_threadgroup",
    "dispatch_simdgroups_per_threadgroup",
)


class Layout(NamedTuple):
    """Offsets in bytes: of a lane's letter box, and of the attributes behind a thread's position."""

    value: int
    fill: int
    result: int
    argument: int
    position: dict[str, int]


def read(library: ctypes.CDLL) -> Layout:
    """The layout that the runtime was compiled with."""
    numbers = (ctypes.c_uint32 * (4 + len(POSITION)))()
    library.assay_air_layout(numbers)
    value, fill, result, argument, *offsets = numbers
    return Layout(value, fill, result, argument, dict(zip(POSITION, offsets, strict=True)))
