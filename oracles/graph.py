"""Graphs that MLX compiles, and keeps on disk by their names: of the processes that want one at once, one compiles it.

The others wait and find it there. On a GPU of NVIDIA's a graph takes seconds of NVRTC, on a CPU one of g++.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PATIENCE = 30.0
"""Seconds that another process is waited for: whoever holds a lock longer may be stopped, or mean harm."""

PAUSE = 0.02
_known: set[tuple[str, ...]] = set()


@contextlib.contextmanager
def compiling(*key: str) -> Iterator[None]:
    """Around the evaluation of a graph that `key` tells from others, by one process of this user at a time.

    Only the first time here, since MLX has the graph in memory from then on. Where no lock can be had, nobody waits,
    and nobody longer than PATIENCE.
    """
    if key in _known:
        yield
        return
    place = int.from_bytes(hashlib.sha256("\n".join(key).encode()).digest()[:7], "big")
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            descriptor = _locks(tempfile.gettempdir(), os.getpid())
            if _locked(descriptor, place):
                held.callback(fcntl.lockf, descriptor, fcntl.LOCK_UN, 1, place)
        yield
    _known.add(key)


def _locked(descriptor: int, place: int) -> bool:
    """Locks one byte; False where somebody else has it for too long."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):
            if time.monotonic() > deadline:
                return False
            time.sleep(PAUSE)
        else:
            return True


@cache
def _locks(folder: str, process: int) -> int:
    """A file of this user's, whose bytes are the locks. OSError: somebody else's stands there, or none can be made."""
    path = Path(folder) / f"mlx-assay-graphs-{os.getuid()}"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor)
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is not this user's")
    return descriptor
