"""Records how long cases of each kind take, from reports of runs: `python ci/record_durations.py REPORT...`.

What is written, conformance/durations.json, is how `mlx-assay run --shard` splits a run that nobody gave durations for.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict

from mlx_assay.conformance.gating.intake import take
from mlx_assay.conformance.splitting import SHIPPED
from mlx_assay.fixtures.case import Case


def main(files: list[str]) -> None:
    """Writes the mean in whole milliseconds, lest a machine's noise look like knowledge."""
    found: dict[str, list[float]] = defaultdict(list)
    for file in files:
        for record in take(file).report.cases:
            case = Case.parse(record.id)
            found[f"{case.operation}/{case.kind}"].append(record.seconds)
    means = {key: max(1, round(1000 * sum(times) / len(times))) * 1000 for key, times in sorted(found.items())}
    SHIPPED.write_text(json.dumps(means, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
