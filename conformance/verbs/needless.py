"""`mutate --needless`: which cases a report of mutants needed, and which it did not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from mlx_assay.conformance.gating.mutants import LARGEST
from mlx_assay.conformance.mutation import report, sufficiency
from mlx_assay.conformance.reporting.intake import printed, read
from mlx_assay.conformance.verbs.mutate import checked_file
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE


def needless(files: Sequence[str], json: str | None, say: Callable[[str], object] = print) -> int:
    """Reads reports of the built-in kernels; returns 0, or 3 where one of them is not complete."""
    target = checked_file(json)
    reports = []
    for file in files:
        try:
            reports.append(report.decode(read(Path(file), LARGEST)))
        except ValueError as error:
            raise Refusal(f"{printed(file)} cannot be read: {printed(str(error))}") from None
    document = sufficiency.sufficient(reports)
    for line in sufficiency.lines(document):
        say(line)
    if not document.operations:
        raise Refusal("Expected mutants that cases of the quick tier killed but these reports hold none")
    if target is not None:
        sufficiency.write(document, target)
    return EXIT_CONFORMS if document.complete else EXIT_INCOMPLETE
