"""The command line of `mlx-assay mutate`; what it runs is imported when it runs."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.commands.grammar import checked, verb
from mlx_assay.conformance.verbs.refusal import Refusal

CASE_SECONDS, JUDGE_SECONDS = 10.0, 300.0

SUMMARY = "plant faults in the built-in kernels, one at a time, and tell which of them the suite does not notice"
EPILOG = """examples:
  mlx-assay mutate normalized_argmax
  mlx-assay mutate --operator barrier-dropped --operator comparison-strictness
  mlx-assay mutate --changed-since origin/main --json mutants.json
  mlx-assay mutate --judge comparison --json judge.json
  mlx-assay mutate --judge --sample 12
  mlx-assay mutate -n 2 --json mutants.json --html mutants.html

exit codes: 0 every mutant is killed or equivalent, 1 one survives, 2 usage, 3 not every mutant was judged"""


def add(verbs: Any) -> None:
    """The verb."""
    mutate = verb(verbs, "mutate", SUMMARY, EPILOG)
    mutate.add_argument(
        "operations", metavar="OPERATION", nargs="*", help="whose kernels, or with --judge which areas (default: all)"
    )
    mutate.add_argument(
        "--judge",
        action="store_true",
        help="plant faults in what judges instead, noticed by ci/selftest: comparison, judge, codec, gate, executor",
    )
    mutate.add_argument("--sample", metavar="N", type=_count, help="with --judge: so many of them, chosen by --seed")
    mutate.add_argument("--seed", metavar="N", type=int, default=0, help="of --sample (default: 0)")
    mutate.add_argument(
        "--operator", metavar="NAME", action="append", default=[], help="this kind of fault alone; may be repeated"
    )
    mutate.add_argument("--changed-since", metavar="REF", help="only texts that differ from those of this git commit")
    mutate.add_argument("--json", metavar="FILE", help="write the report as JSON")
    mutate.add_argument("--html", metavar="FILE", help="write it as a page, with the survivors' diffs")
    mutate.add_argument("-n", metavar="N", type=_workers, default=2, help="processes that judge (default: 2)")
    mutate.add_argument(
        "--limit",
        metavar="SECONDS",
        type=checked(options.limit),
        help="that a mutant may take for a case, with --judge for its tests, and longer kills it (default: 10, or 300)",
    )
    mutate.add_argument("--recheck", action="store_true", help="run equivalent mutants too: one that is killed fails")
    mutate.add_argument("--learn", action="store_true", help="keep the cases that kill most as those tried first")
    mutate.set_defaults(call=_mutate)


def _workers(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 64):
        raise argparse.ArgumentTypeError(f"Expected a number of processes, 1 to 64, but got {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 100_000):
        raise argparse.ArgumentTypeError(f"Expected a number of mutants, 1 to 100000, but got {text!r}")
    return int(text)


def _mutate(arguments: argparse.Namespace) -> int:
    if arguments.judge:
        from mlx_assay.conformance.verbs.judge_mutants import judge_mutants

        return judge_mutants(
            arguments.operations,
            arguments.operator,
            changed_since=arguments.changed_since,
            limit=arguments.limit or JUDGE_SECONDS,
            workers=arguments.n,
            sample=arguments.sample,
            seed=arguments.seed,
            json=arguments.json,
            html=arguments.html,
            learn=arguments.learn,
            recheck=arguments.recheck,
        )
    if arguments.sample is not None:
        raise Refusal("Expected --sample with --judge but got it alone: name operations or operators instead")
    from mlx_assay.conformance.verbs.mutate import mutate

    return mutate(
        arguments.operations,
        arguments.operator,
        changed_since=arguments.changed_since,
        limit=arguments.limit or CASE_SECONDS,
        workers=arguments.n,
        json=arguments.json,
        html=arguments.html,
        learn=arguments.learn,
        recheck=arguments.recheck,
    )
