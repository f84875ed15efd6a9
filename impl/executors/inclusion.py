"""Which files of the runtime decide what a kernel, and what a part of the scheduler, is compiled to."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from mlx_assay.impl.executors.toolchain import RUNTIME

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def headers() -> list[Path]:
    """All files but the scheduler's own sources: what a kernel may include."""
    return sorted(path for path in RUNTIME.iterdir() if path.is_file() and path.suffix != ".cpp")


def included(source: Path) -> list[Path]:
    """A source and every file beside it that it includes, directly or by way of another."""
    found: set[Path] = set()
    waiting = [source]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        waiting += [path.with_name(name) for name in _INCLUDE.findall(path.read_text("utf-8"))]
    return sorted(found)


def digest(paths: Iterable[Path]) -> str:
    """SHA-256 of files, by name and content."""
    made = hashlib.sha256()
    for path in paths:
        made.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return made.hexdigest()
