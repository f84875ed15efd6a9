"""The verb `diff`: two reports held against each other."""

from __future__ import annotations

import os
from pathlib import Path

from rich.console import Console

from mlx_assay.conformance.differing.comparison import Doubled, Given, compare
from mlx_assay.conformance.differing.document import encode
from mlx_assay.conformance.differing.rendering import markdown, show
from mlx_assay.conformance.options import output
from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.reporting.summary import printable
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

LARGEST = 256 << 20
"""Bytes of a report that is read."""


def diff(old: str, new: str, json: str | None = None, markdown_file: str | None = None) -> int:
    """Tells what changed from one report to another; the exit code.

    0: nothing fails that did not fail so before. 1: a case does. 3: a report is incomplete, or cases are gone.
    """
    given = [Given(Path(name), read(Path(name))) for name in (old, new)]
    files = [(_file(name, given), make) for name, make in ((json, encode), (markdown_file, markdown)) if name]
    if len({path for path, _ in files}) < len(files):
        raise Refusal(f"Expected two files, for JSON and for Markdown, but got {json!r} for both")
    try:
        difference = compare(*given)
    except Doubled as error:
        raise Refusal(str(error), EXIT_INCOMPLETE) from error
    for path, make in files:
        made = make(difference)
        _write(path, made if isinstance(made, bytes) else made.encode())
    show(difference, Console())
    return difference.exit_code


def read(path: Path) -> Report:
    """A report; Refusal where there is no file (2), or where what it holds is no whole report (3)."""
    try:
        if not path.is_file():
            raise Refusal(f"Expected a report, a file of `mlx-assay run`, but there is none at {str(path)!r}")
        if (size := path.stat().st_size) > LARGEST:
            raise Refusal(f"{path}: expected a report of {LARGEST} bytes at most but got {size}", EXIT_INCOMPLETE)
        return decode(path.read_bytes())
    except OSError as error:
        raise Refusal(f"{path}: expected a report to read but: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path}: expected a whole report but: {printable(str(error))}", EXIT_INCOMPLETE) from error


def _file(name: str, given: list[Given]) -> Path:
    try:
        path = output(name)
    except ValueError as error:
        raise Refusal(str(error)) from error
    if path in {each.path.resolve() for each in given}:
        raise Refusal(f"Expected a file to write but got {name!r}, which is one of the reports: name another")
    return path


def _write(path: Path, content: bytes) -> None:
    """Whole, or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"{path} cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error
