"""The bounds of an implementation's process: how long it lives, how much memory and disk it may take."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable

from mlx_assay.conformance.process.descendants import keep_orphans

SMALLEST_MEMORY = 4 << 30
"""Bytes of private memory that an implementation may have on any machine; else half of what the machine has."""

FILE_LIMIT = 4 << 30
"""Bytes that one file of a program from outside may have."""

GRACE = 10.0
"""Seconds in which a guardian tidies up and ends the process group."""

_releases: list[Callable[[], object]] = []


def die_with_parent(lifeline: int, parent: int) -> None:
    """Ends this process and all that it started once the judge is gone, however the judge went."""
    if sys.platform == "linux":
        death_signal = 1
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    keep_orphans()
    threading.Thread(target=_watch, args=(lifeline,), daemon=True).start()


def leave_to(release: Callable[[], object]) -> None:
    """Once the judge is gone, who is set free by `release` ends the process group, or this process if that fails.

    A group that is killed at once takes the guardian along before it has removed its folder.
    """
    _releases.append(release)


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    for release in _releases:
        release()
        time.sleep(GRACE)
    os.killpg(0, signal.SIGKILL)


def limit_files() -> None:
    """No file of a program from outside fills the disk."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = FILE_LIMIT if most == resource.RLIM_INFINITY else min(FILE_LIMIT, most)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def limit_memory() -> None:
    """No core files, and no more memory than the machine can spare."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        limit = max(SMALLEST_MEMORY, memory // 2)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
            score.write("500")
