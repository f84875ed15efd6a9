"""The location: the line of the implementation's own text at which a case failed, where its message names one."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePath

from mlx_assay.conformance.record import Record

FRAME = re.compile(r'File "(?P<file>[^"\n<]+)", line (?P<line>\d{1,7})\b')
"""As Python's tracebacks and faulthandler's dumps have it."""
COMPILER = re.compile(r"(?P<file>[^\s:\"']+\.(?:metal|h|cpp)):(?P<line>\d{1,7}):")
FOREIGN = ("site-packages", "dist-packages", "<frozen")


@dataclass(frozen=True)
class Location:
    """A file, relative where it lies below the folder of the checkout or this one, and a line of it."""

    file: str
    line: int


def location(record: Record, implementation: str) -> Location | None:
    """The frame in the implementation's module, else the place that a compiler names; None where nothing does."""
    text = f"{record.message}\n{record.output}"
    module = implementation.partition(":")[0].replace(".", "/")
    frames = [found for found in FRAME.finditer(text) if not any(part in found["file"] for part in FOREIGN)]
    own = [found for found in frames if module and _is_of(found["file"], module)]
    chosen = own or list(COMPILER.finditer(text))
    return Location(_relative(chosen[-1]["file"]), int(chosen[-1]["line"])) if chosen else None


def _is_of(file: str, module: str) -> bool:
    path = PurePath(file).as_posix()
    return any(f"/{path}".endswith(f"/{module}{ending}") for ending in (".py", "/__init__.py"))


def _relative(file: str) -> str:
    for root in (os.environ.get("GITHUB_WORKSPACE"), os.getcwd()):
        if root and PurePath(file).is_relative_to(root):
            return PurePath(file).relative_to(root).as_posix()
    return file
