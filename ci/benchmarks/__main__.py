"""Prints the project's figures: `python ci/benchmarks [--json] [NAME...]`. Nothing is judged by them but speed."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from dataclasses import asdict

NAMES = (
    "plugin_import",
    "host_machine",
    "host_argmax",
    "host_checked",
    "host_counted",
    "host_trellis",
    "trellis_reference",
    "small_subcases",
    "quick_run",
    "stages",
    "scale",
    "two_workers",
    "versions",
    "fixtures",
    "adapter",
    "launch_plan",
    "diff",
    "gate",
    "report_rendering",
    "diagnosis",
    "sweep",
)
ONE_CORE = frozenset({"host_argmax", "host_checked", "host_counted", "host_trellis", "small_subcases"})
"""Figures of one core; what they start stays on it too."""


def main() -> int:
    """Measures and prints; always returns 0, since a busy machine is no fault."""
    parser = argparse.ArgumentParser(prog="python ci/benchmarks", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", choices=[*NAMES, []], help=f"of {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    arguments = parser.parse_args()
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    figures = []
    for name in arguments.names or NAMES:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(cores)} if name in ONE_CORE else cores)
        for figure in importlib.import_module(name).measure():
            figures.append({"benchmark": name, **asdict(figure), "reached": figure.reached})
            if not arguments.json:
                print(figure, flush=True)
    if arguments.json:
        machine = {"machine": platform.machine(), "cores": len(cores), "python": platform.python_version()}
        print(json.dumps({**machine, "figures": figures}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
