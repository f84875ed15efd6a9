"""Compiled objects on disk, shared by any number of processes and threads, up to a limit of bytes.

Where the shared folder cannot be used, a private one serves this process, and a warning says why.
"""

import contextlib
import os
import random
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar

from mlx_assay.impl.executors.folder import Folder, Untrusted
from mlx_assay.impl.executors.stage import stage

T = TypeVar("T")

CACHE_VARIABLE = "MLX_ASSAY_CACHE"
LIMIT_VARIABLE = "MLX_ASSAY_CACHE_LIMIT"
DEFAULT_LIMIT = 512 << 20
_MEND = f"set {CACHE_VARIABLE} to a folder to write in"
_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_SHRINK_EACH = 64


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except OSError:
        # Removed since; a relative path then fails where it is used.
        return Path()


_MOST_REJECTED = 256
_START = _working_directory()


class CacheError(RuntimeError):
    """There is nowhere to keep compiled kernels, or a setting that cannot be meant."""


class LimitError(CacheError):
    """The limit is no number of bytes."""


class Rejected(RuntimeError):
    """What `make` raises of an object. `lasting`: it would say the same once more, so this process remembers it."""

    lasting = True


class CacheWarning(RuntimeWarning):
    """The cache cannot be used: kernels are compiled anew in every process."""


def cache_directory() -> Path:
    """$MLX_ASSAY_CACHE, or `mlx-assay` in the platform's cache directory of the user; absolute. CacheError: no home.

    A relative one counts from where this process was when it loaded this module, wherever it goes afterwards.
    """
    if given := os.environ.get(CACHE_VARIABLE):
        return _START / Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    if sys.platform != "darwin" and os.path.isabs(base):
        return Path(base) / "mlx-assay"
    try:
        home = Path.home()
    except RuntimeError:
        raise CacheError(f"this user has no home to keep compiled kernels in: {_MEND}") from None
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "mlx-assay"


def limit() -> int:
    """Bytes that the cache may take: $MLX_ASSAY_CACHE_LIMIT, such as 64M or 2G, or 512M. CacheError: no such number."""
    given = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not given:
        return DEFAULT_LIMIT
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", given, re.IGNORECASE)
    if found is None:
        raise LimitError(f"{LIMIT_VARIABLE} is {given!r}: expected bytes, as 536870912, 512M or 2G")
    return int(float(found[1]) * (1 << _UNITS[found[2].upper()]))


def shared() -> Folder:
    """The folder that processes share. Untrusted, OSError, CacheError: why it cannot be used."""
    return Folder.trusted(cache_directory() / "compiled")


class Problem(NamedTuple):
    reason: str
    mend: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.mend}"


def _problem(error: Exception) -> Problem:
    if isinstance(error, LimitError):
        return Problem(str(error), f"unset {LIMIT_VARIABLE}, or set it to a number of bytes")
    reason = f"no kernel cache at {cache_directory()}: {error}" if isinstance(error, OSError) else str(error)
    return Problem(reason, _MEND)


def problem() -> Problem | None:
    """Why the shared folder cannot be used for new objects, or None."""
    try:
        folder = shared()
        limit()
        with tempfile.TemporaryFile(dir=folder.path):
            return None
    except (OSError, RuntimeError) as error:
        return _problem(error)


@dataclass
class _Process:
    """What this process knows: a lock for each key, its private folder, where it failed to write."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    keys: dict[str, threading.Lock] = field(default_factory=dict)
    private: Folder | None = None
    failed: dict[Path, Exception] = field(default_factory=dict)
    rejected: dict[str, Rejected] = field(default_factory=dict)
    # Looking through a large cache takes its time: every so many new entries one process does, whichever it is.
    published: int = field(default_factory=lambda: random.randrange(_SHRINK_EACH))


_process = _Process()
# Removed when the process that made it ends; a forked child has no part in it.
_finalizers: list[tempfile.TemporaryDirectory[str]] = []


def _forget() -> None:
    global _process
    _process = _Process()
    for made in _finalizers:
        made._finalizer.detach()  # type: ignore[attr-defined]
    _finalizers.clear()


os.register_at_fork(after_in_child=_forget)


def _private(error: Exception) -> Folder:
    with _process.guard:
        if _process.private is None:
            try:
                made = tempfile.TemporaryDirectory(prefix="mlx-assay-", ignore_cleanup_errors=True)
            except OSError as failed:
                told = _problem(error)
                raise CacheError(f"{told.reason}; nor a temporary folder: {failed}: {told.mend}") from None
            _finalizers.append(made)
            _process.private = Folder(Path(made.name))
            told = _problem(error)
            warnings.warn(f"{told.reason}: kernels are compiled anew in every process: {told.mend}", CacheWarning, 2)
        return _process.private


def _reject(key: str, error: Rejected) -> None:
    if error.lasting:
        while len(_process.rejected) >= _MOST_REJECTED:
            _process.rejected.pop(next(iter(_process.rejected)), None)
        _process.rejected[key] = error.with_traceback(None)


@contextlib.contextmanager
def _alone(key: str) -> Iterator[None]:
    """One thread of this process at a time makes an entry."""
    with _process.guard:
        lock = _process.keys.setdefault(key, threading.Lock())
    with lock:
        yield


def _folders() -> Iterator[Folder]:
    with contextlib.suppress(OSError, Untrusted, CacheError):
        yield shared()
    if _process.private is not None:
        yield _process.private


def _publish(key: str, made: Path, load: Callable[[Path], T]) -> T:
    try:
        folder, most = shared(), limit()
        if folder.path in _process.failed:
            raise _process.failed[folder.path]
        try:
            kept = load(folder.publish(key, made))
        except OSError as error:
            _process.failed[folder.path] = error
            raise
        _process.published += 1
        if _process.published % _SHRINK_EACH == 0:
            folder.shrink(most)
        return kept
    except (OSError, Untrusted, CacheError) as error:
        folder = _private(error)
        try:
            return load(folder.publish(key, made))
        except OSError as again:
            told = _problem(error)
            raise CacheError(f"{told.reason}; nor at {folder.path}: {again}: {told.mend}") from None


def kept(key: str, make: Callable[[Path], None], load: Callable[[Path], T]) -> T:
    """`load(path)` of the object kept under a key of hexadecimal digits; where there is none, `make(path)` writes it.

    `load` raises OSError or ValueError for an object that cannot be used: it is made anew.
    CacheError: there is no room for it anywhere. And whatever `make` raises; it is not asked again for what it
    rejected for good.
    """
    with stage("compile", "compile"), _alone(key):
        if (known := _process.rejected.get(key)) is not None:
            raise type(known)(*known.args)
        for folder in _folders():
            if (path := folder.find(key)) is not None:
                try:
                    return load(path)
                except (OSError, ValueError):
                    folder.discard(key)
        try:
            work = tempfile.TemporaryDirectory(prefix="mlx-assay-", ignore_cleanup_errors=True)
        except OSError as error:
            raise CacheError(f"no folder to compile in: {error}: set TMPDIR to one with room in it") from None
        with work:
            made = Path(work.name) / "object"
            try:
                make(made)
            except Rejected as error:
                _reject(key, error)
                raise
            return _publish(key, made, load)
