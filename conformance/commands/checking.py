"""The command line of `mlx-assay check`; what it runs is imported when it runs."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.commands.grammar import add_profile, checked, verb
from mlx_assay.conformance.verbs.refusal import Refusal

SUMMARY = "run a program's Metal kernels on this CPU and name each race, stray access and undefined read"
EPILOG = """examples:
  mlx-assay check script.py
  mlx-assay check script.py -- --rows 3
  mlx-assay check my_package.kernels:smoke --kernel 'softmax*' --json=found.json
  mlx-assay check script.py --sarif > found.sarif

exit codes: 0 clean, 1 findings, 2 usage, 3 nothing checked, or not to the end"""
STANDARD_OUTPUT = "-"
_WORDS = ("kernels", "ignore", "seed", "limit", "launch_limit", "warnings_as_errors", "sensitivity", "profile")


def add(verbs: Any) -> None:
    """The verb."""
    check = verb(verbs, "check", SUMMARY, EPILOG)
    check.add_argument("target", metavar="FILE|MODULE:FUNCTION", nargs="?", help="run as a program, or called")
    check.add_argument("--json", metavar="FILE", nargs="?", const=STANDARD_OUTPUT, help="as JSON, to stdout or a file")
    check.add_argument("--sarif", metavar="FILE", nargs="?", const=STANDARD_OUTPUT, help="as SARIF 2.1.0, likewise")
    for name, word, shown, what in (
        ("--kernel", "kernels", "GLOB", "check kernels of this name alone"),
        ("--ignore", "ignore", "KIND", "pass over findings of this kind"),
    ):
        told = f"{what}; may be given several times"
        check.add_argument(name, dest=word, metavar=shown, action="append", default=[], help=told)
    check.add_argument(
        "--schedules",
        metavar="NAMES",
        default="in-order,reverse,round-robin,pct",
        help="orders of threads, comma-separated (default: in-order,reverse,round-robin,pct)",
    )
    check.add_argument(
        "--seed", metavar="N", default=1, type=checked(options.seed), help="of schedule pct (default: 1)"
    )
    check.add_argument("--warnings-as-errors", action="store_true", help="exit 1 on warnings too")
    check.add_argument("--sensitivity", action="store_true", help="tell which outputs depend on which switch, in bits")
    add_profile(check)
    check.set_defaults(profile="")
    for name, seconds, what in (("--limit", 600, "the whole"), ("--launch-limit", 60, "a launch under one schedule")):
        check.add_argument(
            name,
            metavar="SECONDS",
            default=float(seconds),
            type=checked(options.limit),
            help=f"that {what} may take (default: {seconds})",
        )
    check.set_defaults(call=call, arguments=[])


def split(argv: list[str]) -> tuple[list[str], list[str]]:
    """The command line before and behind `--`, where the arguments of a checked program begin."""
    if argv[:1] != ["check"] or "--" not in argv:
        return argv, []
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


def call(arguments: argparse.Namespace) -> int:
    """Checks what the arguments ask for; returns the exit code."""
    for name in ("json", "sarif"):
        # `--json script.py` asks for JSON of the script, not for JSON in its place.
        if arguments.target is None and getattr(arguments, name) not in (None, STANDARD_OUTPUT):
            arguments.target = getattr(arguments, name)
            setattr(arguments, name, STANDARD_OUTPUT)
    if arguments.target is None:
        raise Refusal("Expected a Python file or module:function but got none: mlx-assay check --help shows examples")

    from mlx_assay.conformance.checking.request import asked
    from mlx_assay.conformance.verbs.check import check

    words = {name: getattr(arguments, name) for name in _WORDS}
    try:
        request = asked(arguments.target, arguments.arguments, schedules=arguments.schedules.split(","), **words)
    except ValueError as error:
        raise Refusal(str(error)) from error
    return check(request, arguments.json, arguments.sarif)
