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
  mlx-assay mutate --changed-since origin/main --shard 1/4
  mlx-assay mutate --needless mutants.json
  mlx-assay mutate --judge comparison --json judge.json
  mlx-assay mutate --judge --sample 12
  mlx-assay mutate --judge gate --json judge.json --resume judge.json
  mlx-assay mutate --implementation my_kernels --operator comparison-strictness
  mlx-assay mutate --tests 'pytest tests/test_my_kernels.py' --json mine.json
  mlx-assay mutate -n 2 --json mutants.json --html mutants.html

exit codes: 0 every mutant is killed or equivalent (or nothing has changed), 1 one survives, 2 usage, 3 incomplete"""


def add(verbs: Any) -> None:
    """The verb."""
    mutate = verb(verbs, "mutate", SUMMARY, EPILOG)
    mutate.add_argument(
        "operations",
        metavar="OPERATION",
        nargs="*",
        help="whose kernels; with --judge areas, with --implementation or --tests kernels (default: all)",
    )
    mutate.add_argument(
        "--judge",
        action="store_true",
        help="plant faults in what judges instead, noticed by ci/selftest: comparison, judge, codec, gate, executor",
    )
    mutate.add_argument(
        "--implementation",
        metavar="MODULE",
        help="plant them in the kernels that this module launches, noticed by the cases of its operations",
    )
    mutate.add_argument(
        "--tests", metavar="COMMAND", help="in the kernels that these tests launch, noticed by them: 'pytest tests'"
    )
    mutate.add_argument(
        "--sample", metavar="N", type=_count, help="so many of them, chosen by --seed; not of the built-in kernels"
    )
    mutate.add_argument("--seed", metavar="N", type=int, default=0, help="of --sample (default: 0)")
    mutate.add_argument(
        "--operator", metavar="NAME", action="append", default=[], help="this kind of fault alone; may be repeated"
    )
    mutate.add_argument("--changed-since", metavar="REF", help="only texts that differ from those of this git commit")
    mutate.add_argument(
        "--shard",
        metavar="I/N",
        type=checked(options.shard),
        help="one part of N of the built-in kernels' mutants, for another machine each",
    )
    mutate.add_argument(
        "--needless",
        metavar="FILE",
        action="append",
        help="run nothing, and tell which cases killed the mutants of this report, and which kinds no mutant needed",
    )
    mutate.add_argument("--json", metavar="FILE", help="write the report as JSON, and what is known of it meanwhile")
    mutate.add_argument(
        "--resume",
        metavar="FILE",
        help="keep of this earlier report the rulings on mutants that are as they were, and by what has not changed",
    )
    mutate.add_argument("--html", metavar="FILE", help="write it as a page, with the survivors' diffs")
    mutate.add_argument("-n", metavar="N", type=_workers, default=2, help="processes that judge (default: 2)")
    mutate.add_argument(
        "--limit",
        metavar="SECONDS",
        type=checked(options.limit),
        help="that a mutant may take for a case, and longer kills it (default: 10); with --judge and --tests for the "
        "tests (default: 300)",
    )
    mutate.add_argument("--recheck", action="store_true", help="run equivalent mutants too: one that is killed fails")
    mutate.add_argument("--learn", action="store_true", help="keep the cases that kill most as those tried first")
    mutate.add_argument(
        "--thorough",
        action="store_true",
        help="try every case of those tried first on each mutant, and name all that kill it in the JSON report",
    )
    mutate.add_argument(
        "--listed",
        action="store_true",
        help="judge by all cases that kinds list for the quick tier, those too that a file moves to the full one",
    )
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
    if arguments.needless:
        from mlx_assay.conformance.verbs.needless import needless

        return needless(arguments.needless, arguments.json)
    apart = arguments.judge or arguments.implementation is not None or arguments.tests is not None
    if apart and arguments.shard is not None:
        raise Refusal(
            "Expected --shard for the built-in kernels alone but got it with --judge, --implementation or --tests"
        )
    if arguments.judge and (arguments.implementation is not None or arguments.tests is not None):
        raise Refusal("Expected --judge or --implementation and --tests but got both: run them one after the other")
    if arguments.implementation is not None and arguments.tests is not None:
        raise Refusal("Expected --implementation or --tests but got both: run them one after the other")
    if refused := [name for name in ("thorough", "listed") if apart and getattr(arguments, name)]:
        raise Refusal(f"Expected --{refused[0]} with the built-in kernels alone: leave it out")
    if refused := [
        name for name in ("thorough", "listed") if arguments.resume is not None and getattr(arguments, name)
    ]:
        raise Refusal(
            f"Expected --{refused[0]} without --resume: what is kept was ruled on by the quick tier's first case"
        )
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
            resume=arguments.resume,
        )
    if arguments.implementation is not None or arguments.tests is not None:
        from mlx_assay.conformance.verbs.foreign_mutants import foreign_mutants

        if refused := [name for name in ("changed_since", "learn", "recheck", "resume") if getattr(arguments, name)]:
            raise Refusal(f"Expected --{refused[0].replace('_', '-')} without --implementation and --tests")
        return foreign_mutants(
            arguments.implementation,
            arguments.operations,
            arguments.operator,
            tests=arguments.tests,
            limit=arguments.limit or (CASE_SECONDS if arguments.tests is None else JUDGE_SECONDS),
            sample=arguments.sample,
            seed=arguments.seed,
            json=arguments.json,
            html=arguments.html,
        )
    if arguments.sample is not None:
        raise Refusal("Expected --sample with --judge, --implementation or --tests but got it alone: name operations")
    from mlx_assay.conformance.verbs.mutate import mutate

    return mutate(
        arguments.operations,
        arguments.operator,
        changed_since=arguments.changed_since,
        shard=arguments.shard,
        limit=arguments.limit or CASE_SECONDS,
        workers=arguments.n,
        json=arguments.json,
        html=arguments.html,
        learn=arguments.learn,
        recheck=arguments.recheck,
        thorough=arguments.thorough,
        all_listed=arguments.listed,
        resume=arguments.resume,
    )
