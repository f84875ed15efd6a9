"""Records how long cases of each kind take, from reports of runs: `python ci/record_durations.py REPORT...`.

What is written, conformance/durations.json, is how `mlx-assay run --shard` splits a run that nobody gave durations for:
of each kind the mean of its cases of the quick tier, and that of those which the full tier alone has. A tier of which
no report tells stays as it was; the shards of a run are merged first (`mlx-assay merge`), lest a part stand for it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlx_assay.conformance.reporting.intake import take
from mlx_assay.conformance.reporting.report import Report
from mlx_assay.conformance.splitting import SHIPPED, early, table
from mlx_assay.fixtures.case import Case
from mlx_assay.fixtures.kind import TIERS


def main() -> int:
    """Writes the means in whole milliseconds, lest a machine's noise look like knowledge."""
    parser = argparse.ArgumentParser(prog="python ci/record_durations.py", description=__doc__)
    parser.add_argument("reports", metavar="REPORT", nargs="+", help="of whole runs")
    parser.add_argument("--out", metavar="FILE", type=Path, default=SHIPPED, help="default: the file that is shipped")
    arguments = parser.parse_args()
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for file in arguments.reports:
        report = take(file).report
        if not report.complete or report.shard is not None:
            print(f"Expected the report of a whole run but {file} is none: merge its shards", file=sys.stderr)
            return 1
        for key, seconds in _told(report):
            found[key].append(seconds)
    means: dict[str, dict[str, int]] = {tier: dict(table(tier)) for tier in TIERS}
    for tier in {tier for tier, _ in found}:
        told = {kind: times for (own, kind), times in found.items() if own == tier}
        means[tier] = {kind: _mean(times) for kind, times in sorted(told.items())}
    arguments.out.write_text(json.dumps(means, indent=2) + "\n")
    return 0


def _told(report: Report) -> Iterator[tuple[tuple[str, str], float]]:
    """Tier and kind of each case, and its seconds."""
    now = early(report.selection.seed)
    for record in report.cases:
        case = Case.parse(record.id)
        yield ("quick" if case in now else "full", f"{case.operation}/{case.kind}"), record.seconds


def _mean(times: Sequence[float]) -> int:
    """Whole milliseconds, one at least, in microseconds."""
    return max(1, round(1000 * sum(times) / len(times))) * 1000


if __name__ == "__main__":
    sys.exit(main())
