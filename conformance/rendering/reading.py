"""Reading: a report from a file that anyone may have written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from mlx_assay.conformance.rendering.cleaning import clean, visible
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
        descriptor = os.open(Path(name), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refusal(f"Expected a report but {name!r} cannot be read: {reason}") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refusal(f"Expected a report, a regular file, but {name!r} is a folder, device, pipe or socket")
        document = file.read(LARGEST + 1)
    if len(document) > LARGEST:
        raise Refusal(f"Expected a report of {LARGEST >> 20} MiB at most but {name} is larger", EXIT_INCOMPLETE)
    return document


def _described(schema: str) -> str:
    return f"{visible(schema, 80)!r}" if schema else "a document that names no schema"
