"""A folder of compiled objects: entries that appear whole, are checked before use, and leave by age.

An entry is a folder named by its key, and in it one file named by the SHA-256 of the key and the content. It appears
by one rename, and its time of change is that of its last use.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

_UNFINISHED = "work-"
_UNFINISHED_SECONDS = 3600
# Below the limit by this much after removing, so that not every new entry removes one.
_ROOM = 0.9


# Files whose content this process has looked at, as they were then.
_known: dict[Path, tuple[int, ...]] = {}


class Untrusted(RuntimeError):
    """A folder or file that somebody else could have written."""


class Entry(NamedTuple):
    key: str
    bytes: int
    used: float


def _digest(key: str, content: bytes) -> str:
    return hashlib.sha256(key.encode() + b"\0" + content).hexdigest()


def _check(path: Path, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise Untrusted(
            f"{path} belongs to user {found.st_uid}, not to {os.geteuid()}, and code from there is not loaded"
        )
    if found.st_mode & 0o022:
        raise Untrusted(
            f"{path} can be written by others (mode {stat.S_IMODE(found.st_mode):o}), and code from there is not "
            f"loaded; run `chmod go-w {path}`"
        )


def check_own(path: Path) -> None:
    """Untrusted: the file or folder is another user's, or others can write it. OSError: it is not there."""
    _check(path, os.stat(path))


@dataclass(frozen=True)
class Folder:
    """`path` is a folder that this user alone can write."""

    path: Path

    @classmethod
    def trusted(cls, path: Path) -> "Folder":
        """The folder, made where it is missing. OSError: it cannot be. Untrusted: others can write it."""
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                path.mkdir(mode=0o700)
            found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode):
            raise NotADirectoryError(f"{path} is no folder")
        _check(path, found)
        above = os.stat(path.parent)
        # Who can write there could put another folder in this one's place; a sticky folder's entries are their owners'.
        if above.st_mode & 0o002 and not above.st_mode & stat.S_ISVTX:
            _check(path.parent, above)
        return cls(path)

    def find(self, key: str) -> Path | None:
        """The object of an entry, its content checked; None: there is none, or it is damaged (and then removed)."""
        entry = self.path / key
        try:
            names = os.listdir(entry)
        except OSError:
            return None
        if len(names) == 1 and self._sound(entry / names[0], key):
            with contextlib.suppress(OSError):
                os.utime(entry)
            return entry / names[0]
        self.discard(key)
        return None

    def _sound(self, path: Path, key: str) -> bool:
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        with open(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                return False
            try:
                _check(path, found)
            except Untrusted:
                return False
            state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            if _known.get(path) == state:
                return True
            if _digest(key, file.read()) != path.name:
                return False
        _known[path] = state
        return True

    def publish(self, key: str, made: Path) -> Path:
        """Keeps a finished file as an entry; the object's path. OSError: there is no room, or no permission."""
        content = made.read_bytes()
        work = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.path))
        try:
            target = work / "entry" / _digest(key, content)
            target.parent.mkdir(mode=0o700)
            target.write_bytes(content)
            target.chmod(0o500)
            for _ in range(2):
                try:
                    os.rename(target.parent, self.path / key)
                    return self.path / key / target.name
                except OSError:
                    # Another process was first; what it left is as good, unless it is damaged.
                    if (theirs := self.find(key)) is not None:
                        return theirs
            os.rename(target.parent, self.path / key)
            return self.path / key / target.name
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def discard(self, key: str) -> None:
        """Removes an entry, at once for everybody else."""
        with contextlib.suppress(OSError):
            work = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.path))
            with contextlib.suppress(OSError):
                os.rename(self.path / key, work / "entry")
            shutil.rmtree(work, ignore_errors=True)

    def entries(self) -> list[Entry]:
        """What is kept, the longest unused first."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self.path) as listed:
            for entry in listed:
                if entry.name.startswith((".", _UNFINISHED)):
                    continue
                with contextlib.suppress(OSError):
                    size = sum(file.stat(follow_symlinks=False).st_size for file in os.scandir(entry.path))
                    found.append(Entry(entry.name, size, entry.stat(follow_symlinks=False).st_mtime))
        return sorted(found, key=lambda e: e.used)

    def shrink(self, limit: int) -> int:
        """Removes the longest unused entries until the rest takes at most `limit` bytes, but never the last used one.

        One process does at a time; another that comes meanwhile leaves it to that one. Returns how many went.
        """
        with contextlib.suppress(OSError), open(self.path / ".lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._sweep()
            entries = self.entries()
            total = sum(e.bytes for e in entries)
            if total <= limit:
                return 0
            gone = 0
            for entry in entries[:-1]:
                if total <= limit * _ROOM:
                    break
                self.discard(entry.key)
                total -= entry.bytes
                gone += 1
            return gone
        return 0

    def clear(self) -> int:
        """Removes every entry; how many there were."""
        entries = self.entries()
        for entry in entries:
            self.discard(entry.key)
        self._sweep()
        return len(entries)

    def _sweep(self) -> None:
        """Removes what processes that were killed left unfinished."""
        old = time.time() - _UNFINISHED_SECONDS
        for path in self.path.glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime < old:
                    shutil.rmtree(path, ignore_errors=True)
