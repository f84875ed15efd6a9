"""The verb `versions`: releases of MLX asked the same, on the CPU and through Apple's bitcode, and what drifts."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mlx_assay.conformance.options import output
from mlx_assay.conformance.verbs.interruption import interruptible
from mlx_assay.conformance.verbs.refusal import Refusal, refusing
from mlx_assay.conformance.versions import release
from mlx_assay.conformance.versions.comparison import compare
from mlx_assay.conformance.versions.inputs import gathered
from mlx_assay.conformance.versions.rendering import markdown, show
from mlx_assay.conformance.versions.report import DOORS, DoorName, encode


def versions(
    words: Sequence[str], doors: Sequence[DoorName] = (), json: str | None = None, markdown_file: str | None = None
) -> int:
    """Compares the releases among `words`, over the inputs of the queries among them; the exit code of the report.

    0: nothing drifted, or a rule explains what did. 1: some drift has no rule. 3: a release could not be asked.
    """
    releases, queries = split(words)
    files = [(_file(name), make) for name, make in ((json, encode), (markdown_file, markdown)) if name]
    with refusing():
        inputs = gathered(queries)
    chosen = [door for door in DOORS if door in (doors or DOORS)]
    with interruptible():
        report = compare(releases, chosen, inputs, queries, _tell)
    for path, make in files:
        made = make(report)
        _write(path, made if isinstance(made, bytes) else made.encode())
    show(report, Console())
    return report.exit_code


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Releases, from old to new, and queries; Refusal where there are fewer than two releases."""
    named = [word for word in words if word[:1].isdigit()]
    try:
        releases = release.sequence(named)
    except ValueError as error:
        raise Refusal(str(error)) from error
    if len(releases) < 2:
        raise Refusal(
            f"Expected two releases of MLX or more, as 0.32.2 0.32.4, but got {', '.join(releases) or 'none'}"
        )
    return releases, [word for word in words if word not in named]


def _file(name: str) -> Path:
    try:
        return output(name)
    except ValueError as error:
        raise Refusal(str(error)) from error


def _write(path: Path, content: bytes) -> None:
    """Whole, or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise Refusal(f"{path} cannot be written: {error.strerror}") from error


def _tell(text: str) -> None:
    print(f"mlx-assay: {text}", file=sys.stderr, flush=True)
