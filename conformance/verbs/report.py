"""The verb `report`: a report as a page, as Markdown, as text, and in the formats of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from mlx_assay.conformance.options import output, resolved
from mlx_assay.conformance.rendering.reading import read
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

STANDARD_OUTPUT = "-"
SUMMARY = "GITHUB_STEP_SUMMARY"
MAKERS = {
    "html": ("page", "page"),
    "markdown": ("markdown", "markdown"),
    "text": ("text", "text"),
    "ctrf": ("ctrf", "ctrf"),
    "sarif": ("sarif", "sarif"),
    "annotations": ("annotation", "annotated"),
}
"""Module and function of each rendering."""


def report(name: str, asked: Mapping[str, str], summary: bool = False) -> int:
    """Renders the report in the file `name`: `asked` are files by rendering, `-` for standard output.

    `summary` appends Markdown to the file that $GITHUB_STEP_SUMMARY names, and does nothing where it names none. With
    nothing asked the text is shown.
    """
    files = _files(name, asked)
    document = read(name)
    for kind, target in asked.items():
        if target == STANDARD_OUTPUT:
            _print(kind, document)
        else:
            write(files[kind], rendering(kind)(document))
    if summary:
        _append(document)
    elif not asked:
        _print("text", document)
    return EXIT_CONFORMS


def rendering(kind: str) -> Callable[[Report], str]:
    """The function that makes a rendering; what it needs is imported only here."""
    module, name = MAKERS[kind]
    made: Callable[[Report], str] = getattr(import_module(f"mlx_assay.conformance.rendering.{module}"), name)
    return made


def _print(kind: str, document: Report) -> None:
    if kind != "text":
        sys.stdout.write(rendering(kind)(document))
        return
    from rich.console import Console

    from mlx_assay.conformance.rendering.text import show

    show(document, Console(highlight=False, markup=False, emoji=False, soft_wrap=True))


def _append(document: Report) -> None:
    """Adds Markdown to the step's summary, within what GitHub takes of it."""
    from mlx_assay.conformance.rendering.markdown import LARGEST, markdown

    name = os.environ.get(SUMMARY)
    if not name:
        print(f"mlx-assay: no summary is written, since ${SUMMARY} is not set", file=sys.stderr)
        return
    try:
        taken = os.path.getsize(name) if os.path.exists(name) else 0
        with open(name, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(markdown(document, max(LARGEST - taken, 0)))
    except OSError as error:
        raise Refusal(f"${SUMMARY}, {name!r}, cannot be written: {error.strerror}", EXIT_INCOMPLETE) from error


def _files(name: str, asked: Mapping[str, str]) -> dict[str, Path]:
    """Where each rendering goes; Refusal before anything is read where two go to one file, or one over the report."""
    try:
        files = {kind: output(target) for kind, target in asked.items() if target != STANDARD_OUTPUT}
    except ValueError as error:
        raise Refusal(str(error)) from error
    taken = {resolved(name): "the report"}
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
