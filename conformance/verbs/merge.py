"""The verb `merge`: the shards of one run put together into one report."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from mlx_assay.conformance.gating.audit import audit
from mlx_assay.conformance.gating.coverage import complete
from mlx_assay.conformance.gating.gathering import repeated
from mlx_assay.conformance.gating.reason import Reason, incomplete
from mlx_assay.conformance.gating.sharding import merged
from mlx_assay.conformance.gating.suite import Suite
from mlx_assay.conformance.reporting.intake import Damaged, Taken, printed, take
from mlx_assay.conformance.reporting.report import Report, encode
from mlx_assay.conformance.reporting.summary import closing
from mlx_assay.conformance.verbs import outputs
from mlx_assay.conformance.verdict import EXIT_INCOMPLETE


def merge(files: Sequence[str], report: str) -> int:
    """Writes the merged report and returns its exit code; writes nothing where a shard is damaged or missing (3)."""
    paths = outputs.asked([report], files)
    outputs.clear(paths)
    found, reasons = put_together(files)
    for told in reasons:
        print(f"mlx-assay: {told}", file=sys.stderr)
    if found is None or paths[0] is None:
        return EXIT_INCOMPLETE
    outputs.write(paths[0], encode(found))
    print("\n".join(closing(found, paths[0])))
    return EXIT_INCOMPLETE if reasons else found.exit_code


def put_together(files: Sequence[str]) -> tuple[Report | None, list[Reason]]:
    """The merged report, and why there is none, or why it is incomplete; each shard is worked out anew."""
    suite = Suite()
    taken: list[Taken] = []
    reasons: list[Reason] = []
    for file in files:
        try:
            taken.append(take(file))
        except Damaged as error:
            reasons.append(incomplete(printed(file), str(error), "take the file as the run wrote it"))
    reasons += repeated(taken)
    for part in taken:
        reasons += audit(part.report, printed(part.file), suite)
    if reasons:
        return None, reasons
    report, reasons = merged(taken, "merge", suite)
    if report is not None:
        reasons = complete(report, "merge", suite)
    return (None if reasons else report), reasons
