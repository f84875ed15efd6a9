"""The files that may hold a kernel's text: the script, what it read, the modules that it loaded."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mlx_assay.conformance.checking.origin import LARGEST_FILE, Line, Region, locate, regions

MOST_FILES_READ = 1000
MOST_TEXTS = 4000
"""Files whose text is kept: a script may make kernels by the hundred."""

ANCHORS = 3
"""Lines of a text, of one of which a file must hold a part to be looked at closely."""

SHORTEST_ANCHOR = 6
"""Characters of such a part."""

_WRITTEN_OTHERWISE = re.compile(r"[{}\\\\\"'\t]+|\b\d+\b")
"""What is written in another way in some literals, and what is often filled in."""

STANDARD = sysconfig.get_path("stdlib") + os.sep
INSTALLED = f"{os.sep}site-packages{os.sep}"
NOT_TEXT = frozenset({".py", ".pyc", ".so", ".dylib", ".json", ".safetensors", ".npz", ".npy", ".gguf", ".bin"})

_read: dict[str, None] = {}
_listening = False


def listen() -> None:
    """From now on remembers which files this process opens to read: kernels in .metal files are found there."""
    global _listening
    if not _listening:
        _listening = True
        sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or len(_read) >= MOST_FILES_READ:
        return
    path, mode = arguments[0], arguments[1]
    if not isinstance(path, (str, os.PathLike)) or (mode is not None and set(str(mode)) & set("wax+")):
        return
    name = os.fspath(path)
    if isinstance(name, str) and os.path.splitext(name)[1] not in NOT_TEXT:
        _read.setdefault(os.path.abspath(name))


def _worth(name: str, path: object) -> bool:
    """Whether a module may hold a kernel: not where it is of Python's own library, or of this suite's machinery."""
    if not isinstance(path, str) or not path.endswith(".py"):
        return False
    if name.startswith("mlx_assay.") and not name.startswith("mlx_assay.impl.kernels"):
        return False
    return not path.startswith(STANDARD) or INSTALLED in path


def candidates(first: Iterable[str] = ()) -> tuple[list[Path], list[Path]]:
    """Files worth a look: those of `first`, files read and the user's own modules, then installed packages' modules."""
    loaded = ((name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items()))
    modules = [str(path) for name, path in loaded if _worth(name, path)]
    near = dict.fromkeys((*first, *_read, *(path for path in modules if INSTALLED not in path)))
    far = dict.fromkeys(path for path in modules if path not in near)
    return [Path(path) for path in near], [Path(path) for path in far]


@cache
def _regions(path: Path, changed: int) -> tuple[Region, ...]:
    return tuple(regions(path))


@lru_cache(maxsize=MOST_TEXTS)
def _text(path: Path, changed: int) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _holding(anchors: Sequence[str], paths: Iterable[Path]) -> Iterator[Region]:
    """The regions of those files in which one of the anchors stands: parsing every file would take seconds."""
    for path in paths:
        try:
            state = path.stat()
            if state.st_size > LARGEST_FILE or not S_ISREG(state.st_mode):
                continue
            text = _text(path, state.st_mtime_ns)
            if any(anchor in text for anchor in anchors):
                yield from _regions(path, state.st_mtime_ns)
        except OSError:
            continue


def _anchors(lines: Sequence[str]) -> list[str]:
    """Parts of the lines that have the longest ones, one a line; whole lines where none has a part of any length."""
    parts = [max(_WRITTEN_OTHERWISE.split(line), key=len).strip() for line in lines]
    longest = sorted((part for part in parts if len(part) >= SHORTEST_ANCHOR), key=lambda part: -len(part))
    return longest[:ANCHORS] or sorted(lines, key=lambda line: -len(line))[:ANCHORS]


def find(text: str, first: Mapping[str, Sequence[int]] | None = None) -> list[Line | None]:
    """Where each line of a kernel's text stands.

    `first` are files to prefer where several hold it equally, and lines of each near which it is likely to be.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    anchors = _anchors(lines)
    found: list[Line | None] = []
    for paths in candidates(first or ()) if lines else ():
        found = locate(text, _holding(anchors, paths), first)
        if 2 * sum(line is not None for line in found) > len(lines):
            return found
    return found
