"""Threadgroups of one launch on several cores: the launching thread works, and calls others where that pays.

The scheduler measures a launch while it runs; a short one never leaves its thread. The others wait without spinning,
and serve every launch of the process.
"""

import ctypes
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

VARIABLE = "MLX_ASSAY_THREADS"
MOST = 8
_WANTS_HELP, _NO_ENGINE = 100, 101
_NO_MEMORY, _ABANDONED = 2, 3
# Schedules above this one draw, and are the same again only in one thread.
_REVERSE = 1


class ThreadsError(ValueError):
    """A number of threads that cannot be meant."""


def threads() -> int:
    """Threads that a launch may use: $MLX_ASSAY_THREADS, else this process's cores up to 8, or 1 in a worker of xdist.

    ThreadsError: the variable holds no number from 1.
    """
    if given := os.environ.get(VARIABLE, "").strip():
        if not (given.isascii() and given.isdigit() and int(given)):
            raise ThreadsError(f"{VARIABLE} is {given!r}: expected a number of threads, 1 or more")
        return int(given)
    if "PYTEST_XDIST_WORKER" in os.environ:
        return 1
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(known, MOST)


_guard = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor] | None = None


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _guard, _pool
    _guard, _pool = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)


def _helpers(number: int) -> ThreadPoolExecutor:
    global _pool
    with _guard:
        if _pool is None or _pool[0] < number:
            _pool = (number, ThreadPoolExecutor(number, "mlx-assay"))
        return _pool[1]


def idents() -> frozenset[int]:
    """The threads that have been called so far, as the interpreter numbers them."""
    with _guard:
        pool = () if _pool is None else _pool[1]._threads
        return frozenset(thread.ident for thread in pool if thread.ident is not None)


def run(function: Callable[[Any], int], request: Any) -> int:
    """Runs a launch; its fault. `request` and what its buffers point to stay until every thread has left it."""
    pointer = ctypes.byref(request)
    number = threads()
    request.may_ask = number > 1 and request.schedule <= _REVERSE
    fault = function(pointer)
    if fault != _WANTS_HELP:
        return fault
    request.may_ask = 0
    called: list[Future[int]] = []
    try:
        pool = _helpers(number - 1)
        called += [pool.submit(function, pointer) for _ in range(number - 1)]
    except RuntimeError:
        # The interpreter is about to end: this thread does it alone.
        pass
    own = _NO_ENGINE
    try:
        own = function(pointer)
    finally:
        _join(request, called)
    if all(ended == _NO_ENGINE for ended in (own, *(future.result() for future in called))):
        return _NO_MEMORY
    return int(request.fault)


def _join(request: Any, called: list[Future[int]]) -> None:
    """Waits for those who were called, even where the wait is interrupted: they use the launch's memory."""
    interrupted: BaseException | None = None
    while any(not future.done() for future in called):
        try:
            wait(called)
        except BaseException as error:
            interrupted = error
            request.fault = _ABANDONED
    if interrupted is not None:
        raise interrupted
