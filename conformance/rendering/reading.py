"""Reading: a report from a file that anyone may have written."""

from __future__ import annotations

from pathlib import Path

import msgspec

from mlx_assay.conformance.rendering.cleaning import clean, visible
from mlx_assay.conformance.reporting import intake
from mlx_assay.conformance.reporting.report import SCHEMA, Report, decode
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

LARGEST = 128 * 2**20
"""Bytes of a report: ten times what 10,000 cases take whose every output differs."""


class _Head(msgspec.Struct):
    schema: str = ""


def read(name: str) -> Report:
    """The report in the file `name`, cleaned; Refusal for what is no file, no report, or of another version."""
    document = contents(name)
    try:
        head = msgspec.json.decode(document, type=_Head)
        if head.schema != SCHEMA:
            raise Refusal(
                f"Expected a report, {SCHEMA}, but {name} is {_described(head.schema)}: make one by mlx-assay run",
                EXIT_INCOMPLETE,
            )
        return clean(decode(document))
    except RecursionError:
        raise Refusal(f"Expected a report but {name} is nested too deep for one", EXIT_INCOMPLETE) from None
    except (ValueError, MemoryError) as error:
        told = visible(str(error)) or "it takes too much memory"
        raise Refusal(f"Expected a report but {name} is none: {told}", EXIT_INCOMPLETE) from error


def contents(name: str) -> bytes:
    """The bytes of a regular file of LARGEST at most; Refusal for any other."""
    try:
        return intake.read(Path(name), LARGEST)
    except intake.Damaged as error:
        raise Refusal(f"Report {visible(name)!r}: {error}") from error


def _described(schema: str) -> str:
    return f"{visible(schema, 80)!r}" if schema else "a document that names no schema"
