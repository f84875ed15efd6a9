"""The keeper of exhibits: the folder beside a report that holds the tensors of its differing cases."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mlx_assay.conformance.diagnosis.exhibit import MARK, Exhibit
from mlx_assay.fixtures.codec import HEADER_LIMIT, METADATA

MOST_FILES = 200
MOST_BYTES = 512 << 20
SUFFIX = ".safetensors"
NAME_LIMIT = 120


def folder_of(report: Path) -> Path:
    """`run.tensors` beside `run.json`."""
    name = f"{report.stem}.tensors"
    return report.with_name(name if name != report.name else f"{report.name}.tensors")


def file_name(case_id: str) -> str:
    """A name that any file system takes, readable, and of no other case."""
    plain = re.sub(r"[^A-Za-z0-9._=-]+", "_", case_id)[:NAME_LIMIT].strip("._")
    return f"{plain}-{hashlib.sha256(case_id.encode()).hexdigest()[:16]}{SUFFIX}"


class Kept(NamedTuple):
    """A file of tensors: its name relative to the report's folder, and SHA-256 of its bytes; both empty for none."""

    name: str = ""
    sha256: str = ""


class Keeper:
    """Writes exhibits beside a report: MOST_FILES and MOST_BYTES a run, whichever process of it writes."""

    def __init__(self, report: Path) -> None:
        self.folder = folder_of(report.resolve())

    def keep(self, case_id: str, exhibit: Exhibit) -> Kept:
        """Writes one file in one step; none where the run has its fill.

        OSError and ValueError say why a file cannot be written.
        """
        with self._locked() as folder:
            files, size = _filled(folder)
            if files >= MOST_FILES or size >= MOST_BYTES:
                return Kept()
            document = exhibit.document()
            if size + len(document) > MOST_BYTES:
                return Kept()
            path = folder / file_name(case_id)
            unfinished = path.with_name(f".{os.getpid()}.{path.name}")
            try:
                unfinished.write_bytes(document)
                unfinished.replace(path)
            finally:
                unfinished.unlink(missing_ok=True)
            return Kept(f"{folder.name}/{path.name}", hashlib.sha256(document).hexdigest())

    @contextmanager
    def _locked(self) -> Iterator[Path]:
        """The folder, made where it is missing, while no other process writes into it."""
        self.folder.mkdir(exist_ok=True)
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield self.folder
        finally:
            os.close(descriptor)


def _filled(folder: Path) -> tuple[int, int]:
    sizes = [entry.stat(follow_symlinks=False).st_size for entry in os.scandir(folder)]
    return len(sizes), sum(sizes)


def emptied(report: Path) -> None:
    """Removes what an earlier run of this suite kept beside a report, and the folder where nothing else is in it."""
    folder = folder_of(report.resolve())
    if folder.is_symlink() or not folder.is_dir():
        return
    try:
        for entry in list(os.scandir(folder)):
            if entry.is_file(follow_symlinks=False) and entry.name.endswith(SUFFIX) and ours(Path(entry.path)):
                os.unlink(entry.path)
        folder.rmdir()
    except OSError:
        return


def ours(path: Path) -> bool:
    """Whether a file's metadata says that this suite wrote it."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size)) if size <= HEADER_LIMIT else None
        return isinstance(header, dict) and dict(header.get(METADATA) or {}).get(MARK[0]) == MARK[1]
    except (OSError, ValueError, TypeError, struct.error, RecursionError):
        return False
