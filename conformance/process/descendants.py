"""The processes that a process has started, and their processes, wherever they have moved to; known on Linux alone."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

ROUNDS = 20
"""How often to look again: a process may fork while others are killed."""

_CHILD_SUBREAPER = 36


def keep_orphans() -> None:
    """From now on a process whose parent ends, among those that this one started, becomes this one's own child."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1)


def kill_all(pid: int) -> None:
    """Stops a process and kills all that it started, those included that left its process group; not itself."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGSTOP)
    for _ in range(ROUNDS):
        found = descendants(pid)
        if not found:
            return
        for below in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(below, signal.SIGKILL)


def descendants(pid: int) -> list[int]:
    """The processes below a process that run, as Linux tells them; none where it does not."""
    below: dict[int, list[int]] = {}
    for name in _entries():
        parent = _parent(name)
        if parent is not None:
            below.setdefault(parent, []).append(int(name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        started = below.get(waiting.pop(), [])
        found += started
        waiting += started
    return found


def _entries() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _parent(name: str) -> int | None:
    """A process's parent; None for one that is gone, or only waits to be reaped."""
    try:
        with open(f"/proc/{name}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else int(parent)
