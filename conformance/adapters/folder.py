"""The folder of a program from outside: inputs are written into it, one output is read out of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
REMOVAL_SECONDS = 60


class NoOutput(Exception):
    """No file from which an output can be read."""


def create() -> str:
    """A new folder that no other user can enter; its path."""
    return os.path.realpath(tempfile.mkdtemp(prefix="mlx-assay-program-"))


def remove(path: str) -> None:
    """Removes a folder and all below, whatever its owner has made of its permissions and however deep it is.

    Never follows a link and never raises: what cannot be removed stays.
    """
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        if os.path.islink(path):
            os.unlink(path)
    if os.path.isdir(path):
        # Python's own removal goes as deep as its stack, and a program may nest folders by the thousand.
        for command in (("chmod", "-R", "u+rwx"), ("rm", "-rf")):
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                subprocess.run([*command, "--", path], capture_output=True, check=False, timeout=REMOVAL_SECONDS)


class Folder:
    """A folder by its descriptor: whoever puts another in its place, or a link, is not followed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def place(self, name: str) -> str:
        """The path of a file, as the program is told it."""
        return os.path.join(self.path, name)

    def write(self, name: str, data: bytes) -> None:
        """Writes a new file; whatever lies in its place is taken away first."""
        self.discard(name)
        descriptor = os.open(name, _WRITE, 0o600, dir_fd=self._descriptor)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)

    def read(self, name: str, limit: int) -> bytes:
        """The bytes of a regular file of this folder, and of no other name; NoOutput says what is there instead."""
        try:
            descriptor = os.open(name, _READ, dir_fd=self._descriptor)
        except FileNotFoundError:
            raise NoOutput("Expected the output in the file `out` but there is none") from None
        except OSError as error:
            raise NoOutput(f"Expected a regular file as `out` but it cannot be opened: {error.strerror}") from None
        try:
            return _content(descriptor, limit)
        finally:
            os.close(descriptor)

    def discard(self, name: str) -> None:
        """Takes a file away, if it is there."""
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._descriptor)

    def left(self) -> list[str]:
        """What lies in the folder."""
        return sorted(os.listdir(self._descriptor))

    def close(self) -> None:
        """Gives the descriptor back."""
        os.close(self._descriptor)


def _content(descriptor: int, limit: int) -> bytes:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise NoOutput("Expected a regular file as `out` but it is a folder, pipe, socket or device")
    if found.st_nlink != 1:
        raise NoOutput("Expected `out` to be a file of its own but it is linked to another name")
    data = bytearray()
    while len(data) <= limit and (more := os.read(descriptor, limit + 1 - len(data))):
        data += more
    if len(data) > limit or found.st_size > limit:
        size = max(len(data), found.st_size)
        raise NoOutput(f"Expected an output of at most {limit} bytes but `out` has {size} or more")
    return bytes(data)
