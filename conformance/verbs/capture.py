"""The verb `capture`: a device's answers into a file, a file as text, or two files against each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlx_assay.conformance.options import output
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.verbs.refusal import Refusal, checked_executor
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_DIFFERS, EXIT_INCOMPLETE

if TYPE_CHECKING:
    from mlx_assay.conformance.capture.document import Capture


def capture(executor: str | None, file: str, without: Sequence[str]) -> int:
    """Asks the executor (this machine's own for None) and writes the file."""
    try:
        path = output(file)
    except ValueError as error:
        raise Refusal(str(error)) from error
    if path.suffix == ".py":
        raise Refusal(f"Expected a file for the capture but got {file!r}, which is a program: name another")
    name = checked_executor(executor)
    from mlx_assay.conformance.capture.document import encode
    from mlx_assay.conformance.capture.recording import capture as made
    from mlx_assay.conformance.capture.rendering import summary

    try:
        found = made(name, without, lambda text: print(f"mlx-assay: {text}", file=sys.stderr))
    except ValueError as error:
        raise Refusal(str(error)) from error
    except (ImportError, RuntimeError) as error:
        raise Refusal(
            f"The capture did not come to its end: {error}: --without sweeps leaves out the functions", EXIT_INCOMPLETE
        ) from error
    try:
        path.write_bytes(encode(found))
    except OSError as error:
        raise Refusal(f"The capture cannot be written: {error}", EXIT_INCOMPLETE) from error
    for line in summary(found):
        print(printable(line))
    print(f"capture: {path}")
    return EXIT_CONFORMS


def show(file: str) -> int:
    """Prints a capture; Refusal where it is none."""
    from mlx_assay.conformance.capture.rendering import shown

    for line in shown(_read(file)):
        print(printable(line))
    return EXIT_CONFORMS


def compare(one: str, other: str) -> int:
    """Prints what differs between two captures; 1 where something does."""
    from mlx_assay.conformance.capture.rendering import compared

    lines, alike = compared(_read(one), _read(other))
    for line in lines:
        print(printable(line))
    return EXIT_CONFORMS if alike else EXIT_DIFFERS


def _read(file: str) -> Capture:
    from mlx_assay.conformance.capture.reading import BadCapture, read

    try:
        return read(Path(file))
    except BadCapture as error:
        raise Refusal(printable(str(error))) from error
