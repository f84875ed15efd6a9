"""Chooses the quick tier: `python ci/quick_tier.py MUTANTS.json... [--durations RUN.json]`.

Of the cases that kinds list for it, the least that keep every kill of these campaigns and every purpose stay; others
are written into fixtures/later.json, and run in the full tier alone. Campaigns on all that is listed are wanted
(`mlx-assay mutate --listed --thorough`), and a report of `mlx-assay run` for what each case takes.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from mlx_assay.conformance.mutation import report, tier
from mlx_assay.conformance.splitting import durations, expected
from mlx_assay.fixtures.kind import LATER


def main() -> int:
    """Writes the file; 1 where a mutant is in no report."""
    parser = argparse.ArgumentParser(prog="python ci/quick_tier.py", description=__doc__)
    parser.add_argument("reports", metavar="MUTANTS.json", nargs="+", help="reports of campaigns")
    parser.add_argument("--durations", metavar="RUN.json", help="report of a run (default: what kinds take by average)")
    parser.add_argument("--partial", action="store_true", help="though some mutants are in no report")
    parser.add_argument("--dry", action="store_true", help="tell, and write nothing")
    parser.add_argument("--why", action="store_true", help="tell of each case that stays what it alone is there for")
    arguments = parser.parse_args()
    campaigns = [report.decode(Path(file).read_bytes()) for file in arguments.reports]
    if (unruled := tier.unruled(campaigns)) and not arguments.partial:
        print(f"Expected reports on every mutant but {len(unruled)} are in none, such as {unruled[0]}", file=sys.stderr)
        return 1
    recorded = durations(arguments.durations) if arguments.durations else {}
    cases = tier.listed()

    def cost(name: str) -> int:
        return recorded.get(name) or expected(cases[name])

    wanted = tier.asked(tier.kills(campaigns), cases)
    kept = tier.smallest(wanted, cost)
    alone = Counter(purpose for name in kept for purpose in wanted[name])
    if arguments.why:
        for name in kept:
            print(name, *sorted({str(purpose[0]) for purpose in wanted[name] if alone[purpose] == 1}))
    for operation in dict.fromkeys(case.operation for case in cases.values()):
        names = [name for name, case in cases.items() if case.operation == operation]
        stay = [name for name in kept if cases[name].operation == operation]
        print(
            f"{operation}: {len(stay)} of {len(names)} cases, "
            f"{sum(map(cost, stay)) / 1e6:.1f} of {sum(map(cost, names)) / 1e6:.1f} s"
        )
    seconds = [sum(map(cost, names)) / 1e6 for names in (kept, cases)]
    print(f"all: {len(kept)} of {len(cases)} cases, {seconds[0]:.1f} of {seconds[1]:.1f} s")
    for sort, told in tier.SORTS.items():
        print(f"  {len({purpose for name in kept for purpose in wanted[name] if purpose[0] == sort})} times {told}")
    if not arguments.dry:
        LATER.write_text(json.dumps(tier.later(kept, cases), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
