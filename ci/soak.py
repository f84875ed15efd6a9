"""Strikes staged runs with signals at random moments and holds what they leave: `python ci/soak.py --strikes 50`.

Each must end in a valid report that names what is missing; nothing in it may have passed that never ran.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "selftest"))

from striking import faults, strikes, struck


def main() -> int:
    """Prints a line a strike; 1 if any left what it must not."""
    parser = argparse.ArgumentParser(prog="python ci/soak.py", description=__doc__)
    parser.add_argument("--strikes", type=int, default=50, metavar="N", help="how many (default: 50)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="that draws them (default: 0)")
    arguments = parser.parse_args()
    broken = done = 0
    for strike in strikes(arguments.strikes, arguments.seed):
        with tempfile.TemporaryDirectory(prefix="mlx-assay-soak-") as folder:
            left = struck(Path(folder), strike)
        found = faults(strike, left)
        done += 1
        broken += bool(found)
        totals = left.report.totals
        print(
            f"{strike}: exit code {left.code} after {left.seconds:.1f} s, {left.report.verdict}, "
            f"{totals.executed} of {totals.declared} in the report, {len(left.judged)} judged",
            *(f"  FAULT: {fault}" for fault in found),
            sep="\n",
            flush=True,
        )
    print(f"{done} strikes, {broken} with faults")
    return 1 if broken or not done else 0


if __name__ == "__main__":
    sys.exit(main())
