"""The verb `report`: a report as a page, as Markdown, as text, and in the formats of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from mlx_assay.conformance.options import output
from mlx_assay.conformance.rendering.reading import read
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

STANDARD_OUTPUT = "-"
SUMMARY = "GITHUB_STEP_SUMMARY"


def _html(report: Report) -> str:
    from mlx_assay.conformance.rendering.page import page

    return page(report)


RENDERINGS: dict[str, Callable[[Report], str]] = {"html": _html}


def report(name: str, asked: Mapping[str, str], summary: bool = False) -> int:
    """Renders the report in the file `name`: `asked` are files by rendering, `-` for standard output.

    `summary` appends Markdown to the file that $GITHUB_STEP_SUMMARY names. With nothing asked the text is shown.
    """
    files = _files(name, asked)
    document = read(name)
    for rendering, target in asked.items():
        text = RENDERINGS[rendering](document)
        if target == STANDARD_OUTPUT:
            sys.stdout.write(text)
        else:
            write(files[rendering], text)
    return EXIT_CONFORMS


def _files(name: str, asked: Mapping[str, str]) -> dict[str, Path]:
    """Where each rendering goes; Refusal before anything is read where two go to one file, or one over the report."""
    try:
        files = {kind: output(target) for kind, target in asked.items() if target != STANDARD_OUTPUT}
    except ValueError as error:
        raise Refusal(str(error)) from error
    taken = {Path(name).resolve(): "the report"}
    for kind, path in files.items():
        if path in taken:
            raise Refusal(f"Expected a file of its own for --{kind} but got {str(path)!r}, which is {taken[path]}")
        taken[path] = f"that of --{kind}"
    if sum(target == STANDARD_OUTPUT for target in asked.values()) > 1:
        raise Refusal("Expected one rendering at most on standard output: name files for the others")
    return files


def write(path: Path, text: str) -> None:
    """Whole, or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(text.encode(errors="backslashreplace"))
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"{path} cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error
