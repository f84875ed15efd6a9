"""One launch on the host: arguments by address, the grid checked in 64 bits, the scheduler called without the GIL."""

import ctypes
from collections.abc import Sequence

import numpy as np

from mlx_assay.impl.executors import crew, fidelity
from mlx_assay.impl.executors.arguments import axes
from mlx_assay.impl.executors.divergence import Divergence
from mlx_assay.impl.executors.guard import STRAY, Guard
from mlx_assay.impl.executors.objects import Library
from mlx_assay.impl.executors.stage import stage

MAX_THREADS_PER_THREADGROUP = 1024
MAX_THREADGROUP_BYTES = 32 * 1024

# A NaN in f16, bfloat and f32 alike.
DEFAULT_POISON = 0xFFDEFFDE


class _Launch(ctypes.Structure):
    _fields_ = (
        ("thread", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("threadgroup", ctypes.c_uint32 * 3),
        ("threadgroup_bytes", ctypes.c_uint32),
        ("poison", ctypes.c_uint32),
        ("schedule", ctypes.c_uint32),
        ("fault", ctypes.c_uint32),
        ("lines", ctypes.c_int32 * 2),
        ("divergent_simdgroup_operations", ctypes.c_uint32),
        ("barriers_after_exits", ctypes.c_uint32),
        ("keep_denormals", ctypes.c_uint32),
        ("simd_order", ctypes.c_uint32),
        ("check", ctypes.c_void_p),
        ("fault_address", ctypes.c_uint64),
        ("fault_access", ctypes.c_uint32),
        ("guarded", ctypes.c_uint32),
        ("next_threadgroup", ctypes.c_uint64),
        ("may_ask", ctypes.c_uint32),
        ("counter", ctypes.c_void_p),
    )


class _Buffer(ctypes.Structure):
    """CPython's Py_buffer."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("owner", ctypes.py_object),
        ("bytes", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_STRIDED = 0x18  # PyBUF_STRIDES
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = [ctypes.POINTER(_Buffer)]


def layout(array: object) -> tuple[int, tuple[int, ...]]:
    """The address of an evaluated array's first element and its strides in elements.

    The address is good for as long as the caller keeps the array.
    """
    view = _Buffer()
    _get_buffer(array, view, _STRIDED)
    try:
        strides, size = view.strides, view.itemsize
        return view.address or 0, tuple([strides[i] // size for i in range(view.ndim)])
    finally:
        _release_buffer(view)


def address(array: object) -> int:
    """The first half of `layout`."""
    if isinstance(array, np.ndarray):
        return int(array.__array_interface__["data"][0])
    view = _Buffer()
    _get_buffer(array, view, _STRIDED)
    try:
        return view.address or 0
    finally:
        _release_buffer(view)


def contents(array: object) -> bytes:
    """The bytes of an evaluated, row-contiguous array."""
    view = _Buffer()
    _get_buffer(array, view, _STRIDED)
    try:
        return ctypes.string_at(view.address, view.bytes) if view.bytes else b""
    finally:
        _release_buffer(view)


def row_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements lie in row-major order without gaps; an axis of size 1 may have any stride."""
    step = 1
    for axis in range(len(shape) - 1, -1, -1):
        size = shape[axis]
        if size != 1 and strides[axis] != step:
            return False
        step *= size
    return True


def check_grid(grid: Sequence[int], threadgroup: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The grid and the threadgroup clamped to it, as `dispatchThreads` and MLX do.

    TypeError: not three integers of MLX's range (an axis has at most 2**31 - 1 threads).
    ValueError: a negative axis, an empty threadgroup, or more than 1,024 threads in one.
    """
    grid, threadgroup = axes("grid", grid), axes("threadgroup", threadgroup)
    if min(grid) < 0 or min(threadgroup) < 0:
        name, value = ("grid", grid) if min(grid) < 0 else ("threadgroup", threadgroup)
        raise ValueError(f"[metal_kernel] Expected `{name}` to be without negative numbers but got {value}.")
    threads = threadgroup[0] * threadgroup[1] * threadgroup[2]
    if threads > MAX_THREADS_PER_THREADGROUP:
        raise ValueError(
            f"Thread group size ({threads}) is greater than  the maximum allowed threads per threadgroup "
            f"({MAX_THREADS_PER_THREADGROUP})."
        )
    if threads == 0:
        raise ValueError(f"[metal_kernel] Expected `threadgroup` to hold a thread but got {tuple(threadgroup)}.")
    return grid, (min(threadgroup[0], grid[0]), min(threadgroup[1], grid[1]), min(threadgroup[2], grid[2]))


def prepare(
    thread: int,
    threadgroup_bytes: int,
    grid: Sequence[int],
    threadgroup: Sequence[int],
    poison: int,
    schedule: int,
) -> _Launch:
    """What the scheduler is asked, but for the buffers, with the fidelity switches as they stand."""
    switches = fidelity.current()
    request = _Launch(
        thread=thread,
        threadgroup_bytes=threadgroup_bytes,
        poison=poison,
        schedule=schedule,
        keep_denormals=not switches.flushes,
        simd_order=switches.order,
    )
    request.grid[:] = grid
    request.threadgroup[:] = threadgroup
    return request


def launch(
    library: Library,
    name: str,
    addresses: Sequence[int],
    grid: Sequence[int],
    threadgroup: Sequence[int],
    poison: int,
    schedule: int = 0,
    guard: Guard | None = None,
) -> Divergence:
    """Runs every thread of a grid. RuntimeError: a fault of the kernel, with its name and source lines.

    `guard` holds the arrays where the launch is guarded; StrayAccess: the kernel left them.
    """
    grid, threadgroup = check_grid(grid, threadgroup)
    if not all(grid):
        return Divergence(0, 0)
    request = prepare(library.thread, library.threadgroup_bytes, grid, threadgroup, poison, schedule)
    buffers = (ctypes.c_uint64 * len(addresses))(*addresses)
    request.buffers = ctypes.addressof(buffers)
    request.guarded = guard is not None
    with stage("kernel"):
        fault = crew.run(library.launch, request)
    if guard is not None and fault >= STRAY:
        raise guard.error(name, fault, request.fault_address, request.fault_access)
    check_fault(name, fault, request.lines)
    return Divergence(request.divergent_simdgroup_operations, request.barriers_after_exits)


def check_fault(name: str, fault: int, lines: Sequence[int]) -> None:
    """RuntimeError: what the scheduler has met, with the source lines that it told."""
    if fault == 1:
        a, b = lines
        raise RuntimeError(
            f"[metal_kernel] kernel {name!r} on the host executor: threads of one threadgroup wait at different "
            f"barriers, source lines {a} and {b}: every thread has to reach the same threadgroup_barrier."
        )
    if fault:
        raise RuntimeError("[metal_kernel] the host executor got no memory for its stacks (256 MiB of address space)")
