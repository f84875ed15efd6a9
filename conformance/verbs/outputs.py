"""Files that a verb writes: told apart before anything is done, and written whole or not at all.

The file that $GITHUB_STEP_SUMMARY names is another's too: what a step wrote there before stays, and more is appended.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from mlx_assay.conformance.options import output, resolved
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

SUMMARY = "GITHUB_STEP_SUMMARY"


def asked(names: Iterable[str | None], read: Iterable[str] = ()) -> list[Path | None]:
    """The paths of files to write, None where none is asked for; Refusal for one that stands twice, or is read too."""
    try:
        paths = [output(name) if name is not None else None for name in names]
    except ValueError as error:
        raise Refusal(str(error)) from error
    taken = {resolved(name) for name in read}
    for path in filter(None, paths):
        if path in taken:
            raise Refusal(f"Expected a file of its own to write but got {str(path)!r}, which is used already")
        taken.add(path)
    return paths


def clear(paths: Iterable[Path | None]) -> None:
    """Removes files of an earlier call, lest they stand for this one."""
    for path in filter(None, paths):
        if _shared(path):
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise Refusal(f"{path} cannot be replaced: {error.strerror}", EXIT_INCOMPLETE) from error


def write(path: Path, content: bytes) -> None:
    """Whole, or not at all; behind what is there in a step's summary."""
    if _shared(path):
        _append(path, content)
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        raise Refusal(f"{path} cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error
    finally:
        part.unlink(missing_ok=True)


def _shared(path: Path) -> bool:
    name = os.environ.get(SUMMARY)
    return bool(name) and path == resolved(name or "")


def _append(path: Path, content: bytes) -> None:
    try:
        with path.open("ab") as file:
            file.write(content)
    except OSError as error:
        raise Refusal(f"{path} cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error
