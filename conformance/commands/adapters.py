"""The command line of `mlx-assay adapter-check`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.commands.grammar import checked, verb

SUMMARY = "tell the author of a program from outside what it does wrong"
EPILOG = """examples:
  mlx-assay adapter-check 'cmd: bun adapter.ts'
  mlx-assay adapter-check 'cmd: python adapter.py' --json

docs/adapters.md is the protocol's page.

exit codes: 0 no faults, 1 faults, 2 usage, 3 no faults, but not all could be looked at"""
LIMIT = 10.0


def add(verbs: Any) -> None:
    """The verb."""
    check = verb(verbs, "adapter-check", SUMMARY, EPILOG)
    check.add_argument("program", metavar="'cmd: PROGRAM ...'", help="as --implementation takes it")
    check.add_argument(
        "--limit",
        metavar="SECONDS",
        default=LIMIT,
        type=checked(options.limit),
        help=f"seconds that one answer may take (default: {LIMIT:g})",
    )
    check.add_argument("--json", action="store_true", help="as JSON")
    check.set_defaults(call=_check)


def _check(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.adapter import adapter_check

    return adapter_check(arguments.program, arguments.limit, arguments.json)
