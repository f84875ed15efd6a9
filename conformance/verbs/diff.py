"""The verb `diff`: two reports held against each other."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from mlx_assay.conformance.differing.comparison import Given, Unsound, compare
from mlx_assay.conformance.differing.document import encode
from mlx_assay.conformance.differing.rendering import markdown, show
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.reporting.intake import read
from mlx_assay.conformance.reporting.report import Report, decode
from mlx_assay.conformance.verbs import outputs
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

LARGEST = 256 << 20
"""Bytes of a report that is read."""


def diff(old: str, new: str, json: str | None = None, markdown_file: str | None = None) -> int:
    """Tells what changed from one report to another; the exit code.

    0: nothing fails that did not fail so before. 1: a case does. 3: a report is incomplete, or cases are gone.
    """
    given = [Given(Path(name), read_report(Path(name))) for name in (old, new)]
    paths = outputs.asked([json, markdown_file], [old, new])
    try:
        difference = compare(*given)
    except Unsound as error:
        raise Refusal(printable(str(error)), EXIT_INCOMPLETE) from error
    for_json, for_markdown = paths
    if for_json:
        outputs.write(for_json, encode(difference))
    if for_markdown:
        outputs.write(for_markdown, markdown(difference).encode())
    show(difference, Console())
    return difference.exit_code


def read_report(path: Path) -> Report:
    """A report; Refusal where there is no file (2), or where what it holds is no whole report (3)."""
    if not path.is_file():
        raise Refusal(f"Expected a report, a file of `mlx-assay run`, but there is none at {str(path)!r}")
    try:
        return decode(read(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{path}: expected a whole report but: {printable(str(error))}", EXIT_INCOMPLETE) from error
