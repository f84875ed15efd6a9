"""The guardian: a shell that ends a process group, and removes a folder, once the process that started it is gone."""

from __future__ import annotations

import subprocess

_SCRIPT = 'read -r line; rm -rf -- "$1"; kill -9 0'


class Guardian:
    """Waits for the end of a pipe whose other end this process alone holds, however this process ends.

    It belongs to the process group of this process, and dies with it where the group is killed. Python's own way to tie
    a process to its parent would copy this process at each start of a program.
    """

    def __init__(self, folder: str) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "sh", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def release(self) -> None:
        """Lets it do its work while this process still lives."""
        if self._process.stdin is not None:
            self._process.stdin.close()
