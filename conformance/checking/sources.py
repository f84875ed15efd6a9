"""The files that may hold a kernel's text: the script, what it read, the modules that it loaded."""

from __future__ import annotations

import linecache
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
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

_WORD = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)")

MOST_PIECES = 4
"""Pieces of a program around one of its lines that are searched for a kernel's text, from the least on."""

MOST_NEAR = 40
"""Such pieces around all lines of a stack."""

PART_OF_TEXT = 0.5
MOST_OF_TEXT = 0.8
"""Which share of a text's lines must be found near the line that made it, and elsewhere."""

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


def _near(made: Mapping[str, Sequence[int]]) -> Iterator[list[Region]]:
    """Regions that stand with a line of Python in one expression, statement or function, the nearest alone first.

    Then those of the module that the line names.
    """
    for path, number in [(Path(file), number) for file, numbers in made.items() for number in numbers]:
        try:
            regions = _regions(path, path.stat().st_mtime_ns)
        except OSError:
            continue
        found = [(distance, region) for region in regions if (distance := region.distance(number)) is not None]
        found.sort(key=lambda one: one[0])
        for most in sorted({distance for distance, _ in found})[:MOST_PIECES]:
            yield [region for distance, region in found if distance <= most]
        words = set(_WORD.findall(linecache.getline(str(path), number)))
        if named := [region for region in regions if _name(region) in words]:
            yield named


def _name(region: Region) -> str:
    """The name to which the statement that holds a region assigns it; empty where it assigns to none."""
    first = min((span[0] for span in region.around), default=0)
    found = _ASSIGNED.match(linecache.getline(str(region.path), first))
    return found[1] if found else ""


def find(text: str, first: Mapping[str, Sequence[int]] | None = None) -> list[Line | None]:
    """Where each line of a kernel's text stands.

    `first` are files to prefer where several hold it equally, and lines of each near which it is likely to be.
    Of texts that hold all of it, that in one statement or function with such a line comes first. What stands nowhere in
    whole is found there in part, and elsewhere where nearly all of it is.
    """
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if not lines:
        return []
    best: list[Line | None] = []
    for near in islice(_near(first or {}), MOST_NEAR):
        found = locate(text, near)
        if _share(found, lines) == 1:
            return found
        best = max(best, found, key=lambda one: _share(one, lines))
    anchors = _anchors(lines)
    for paths in candidates(first or ()):
        found = locate(text, _holding(anchors, paths), first, strict=True)
        if _share(found, lines) >= MOST_OF_TEXT and _share(found, lines) > _share(best, lines):
            return found
    return best if _share(best, lines) > PART_OF_TEXT else []


def _share(found: Sequence[Line | None], lines: Sequence[str]) -> float:
    return sum(line is not None for line in found) / len(lines)
