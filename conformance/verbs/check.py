"""The verb `check`: a script's kernels under the checker, in a process of its own, and what is found."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import TextIO

from mlx_assay.conformance.checking import rendering, sarif
from mlx_assay.conformance.checking.gathering import gathered
from mlx_assay.conformance.checking.ledger import TargetRefused
from mlx_assay.conformance.checking.report import Asked, CheckReport, encode
from mlx_assay.conformance.checking.target import NoTarget, Script, target
from mlx_assay.conformance.commands.checking import STANDARD_OUTPUT
from mlx_assay.conformance.options import output, resolved
from mlx_assay.conformance.quotation import printable
from mlx_assay.conformance.verbs.interruption import postponed
from mlx_assay.conformance.verbs.refusal import Refusal, checked_profile
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE

_NAMES_OF_STANDARD_OUTPUT = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def check(asked: Asked, json: str | None, sarif_log: str | None) -> int:
    """Checks what is asked for and tells of it; returns the exit code.

    `json` and `sarif_log` are files to write, "-" for standard output, where the text then goes to standard error.
    """
    json, sarif_log = _place(json), _place(sarif_log)
    try:
        found = target(asked.target)
    except NoTarget as error:
        raise Refusal(str(error)) from error
    _check_outputs(json, sarif_log, found.path if isinstance(found, Script) else None)
    if asked.profile:
        print(f"mlx-assay: {printable(checked_profile(asked.profile, 'host'))}", file=sys.stderr)
    report = _gathered(asked)
    try:
        _write(encode(report), json)
        _write(sarif.encode(report), sarif_log)
        _show(report, sys.stderr if STANDARD_OUTPUT in (json, sarif_log) else sys.stdout)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Refusal(f"The result cannot be written: {error}", EXIT_INCOMPLETE) from error
    return report.exit_code


def _place(text: str | None) -> str | None:
    return STANDARD_OUTPUT if text in _NAMES_OF_STANDARD_OUTPUT else text


def _show(report: CheckReport, file: TextIO) -> None:
    if isinstance(file, io.TextIOWrapper):
        # A source line may hold what the terminal's encoding does not.
        file.reconfigure(errors="backslashreplace")
    rendering.show(report, rendering.console(file))


def _gathered(asked: Asked) -> CheckReport:
    sys.stdout.flush()
    try:
        with postponed() as interrupted:
            return gathered(asked, lambda text: print(f"mlx-assay: {printable(text)}", file=sys.stderr), interrupted)
    except TargetRefused as error:
        raise Refusal(str(error)) from error


def _check_outputs(json: str | None, sarif_log: str | None, script: str | None) -> None:
    if json is not None and json == sarif_log:
        raise Refusal(f"Expected two places for JSON and SARIF but got {json!r} for both")
    for text in (json, sarif_log):
        if text == STANDARD_OUTPUT and sys.__stdout__ is None:
            raise Refusal("Expected standard output to be open for the result but it is closed: name a file")
        if text is None or text == STANDARD_OUTPUT:
            continue
        try:
            path = output(text)
        except ValueError as error:
            raise Refusal(str(error)) from error
        if path.suffix == ".py" or (script is not None and path == resolved(script)):
            raise Refusal(f"Expected a file for the result but got {text!r}, which is a program: name another")


def _write(document: bytes, where: str | None) -> None:
    if where is None:
        return
    if where != STANDARD_OUTPUT:
        Path(where).write_bytes(document)
        return
    with contextlib.suppress(AttributeError):
        sys.stdout.buffer.write(document)
        sys.stdout.flush()
        return
    sys.stdout.write(document.decode())
