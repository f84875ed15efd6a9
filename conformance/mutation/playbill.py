"""The page on which a worker writes which mutant is on, read by the process that runs it at every call."""

from __future__ import annotations

import mmap
from pathlib import Path

SIZE = 256
FILE = "playbill"


class Playbill:
    """A file in memory that two processes share: a name, and whether kernels run under the checker."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        if not path.exists():
            path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), SIZE)

    def write(self, name: str, checked: bool) -> None:
        """Announces the next mutant; nothing may run meanwhile."""
        text = f"{'checked' if checked else 'plain'} {name}".encode()
        self._page[:] = text.ljust(SIZE, b"\0")

    def read(self) -> tuple[str, bool]:
        """The mutant that is on, and whether it runs under the checker."""
        how, _, name = self._page[:].rstrip(b"\0").decode().partition(" ")
        return name, how == "checked"
