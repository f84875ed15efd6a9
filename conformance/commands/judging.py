"""The command lines of the verbs that judge: `run` and `replay`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.commands.grammar import (
    EXHAUSTIVE,
    EXITS,
    QUERY_HELP,
    add_checked,
    add_judging,
    add_queries,
    checked,
    verb,
)
from mlx_assay.conformance.verbs.refusal import Refusal

BUNDLE = ".bundle"
DEFAULT_REPORT = "mlx-assay-report.json"


def add(verbs: Any) -> None:
    """Both verbs."""
    _add_run(verbs)
    _add_replay(verbs)


def _add_run(verbs: Any) -> None:
    run = verb(
        verbs,
        "run",
        "judge an implementation on every selected case and write a report",
        "examples:\n  mlx-assay run\n  mlx-assay run 'normalized_argmax/*' --tier full -n 4\n"
        "  mlx-assay run --implementation my_kernels --report mine.json --junit mine.xml\n"
        "  mlx-assay run 'apply_token_bitmask/*' --stages\n"
        "  mlx-assay run --implementation my_package.kernels:fast --executor host --checked\n"
        f"  mlx-assay run --implementation 'cmd: bun adapter.ts'\n\n{QUERY_HELP}\n{EXITS}",
    )
    add_queries(run, exhaustive=True)
    add_judging(run)
    add_checked(run)
    run.add_argument(
        "-n",
        metavar="N",
        type=_workers,
        help="processes that judge, 0: none beside this one, or auto (default: cores up to 4)",
    )
    run.add_argument("--report", metavar="FILE", default=DEFAULT_REPORT, help=f"default: {DEFAULT_REPORT}")
    run.add_argument(
        "--without", metavar="ORACLE", action="append", default=[], help="do not ask this oracle; the report names it"
    )
    run.add_argument(
        "--leg",
        metavar="NAME",
        type=checked(options.leg),
        help="by which a gate knows this run (default: the device class, such as g16 or host-x86_64)",
    )
    run.add_argument("--shard", metavar="I/N", help="one part of N, as long as the others; mlx-assay merge joins them")
    run.add_argument("--durations", metavar="REPORT", help="of an earlier run, by whose durations --shard splits")
    run.add_argument("--stages", action="store_true", help="tell where the time of the run goes, stage by stage")
    run.add_argument("--junit", metavar="FILE", help="write JUnit XML too")
    run.add_argument("--bundles", metavar="DIR", help="keep a bundle of each of the first failing cases there")
    run.set_defaults(call=_run)


def _add_replay(verbs: Any) -> None:
    replay = verb(
        verbs,
        "replay",
        "run one case again and show its inputs, each subcase, and both encodings where they differ",
        "examples:\n  mlx-assay replay 'normalized_argmax/bfloat16/ties/tile-edge?rows=3&vocab=1025&seed=7'\n"
        "  mlx-assay replay 'ID' --implementation my_kernels --bundle failing.bundle\n"
        f"  mlx-assay replay --bundle failing.bundle --run-kernels\n\n{EXITS}",
    )
    replay.add_argument("id", metavar="ID", nargs="?", help="a whole case id, as reports show it")
    replay.add_argument("--bundle", metavar="FILE", help="keep the case in one file; without ID, judge that file again")
    replay.add_argument(
        "--run-kernels",
        action="store_true",
        help="run the kernels of a bundle on this CPU: their text is code of whoever made the bundle",
    )
    add_judging(replay)
    add_checked(replay)
    replay.set_defaults(call=_replay)


def _workers(text: str) -> int | None:
    if text == "auto":
        return None
    if not (text.isascii() and text.isdigit() and int(text) <= 256):
        raise argparse.ArgumentTypeError(f"Expected a number of processes, 0 to 256, or auto but got {text!r}")
    return int(text)


def _options(arguments: argparse.Namespace) -> options.Options:
    return options.Options(
        queries=tuple(arguments.queries),
        implementation=arguments.implementation,
        executor=arguments.executor,
        tier=arguments.tier,
        seed=arguments.seed,
        report=arguments.report,
        limit=arguments.limit or options.default_limit(arguments.checked),
        without=tuple(arguments.without),
        profile=arguments.profile,
        leg=arguments.leg,
        checked=arguments.checked,
        shard=arguments.shard,
        durations=arguments.durations,
        stages=arguments.stages,
    )


UNSWEPT = ("seed", "profile", "checked", "without", "leg", "shard", "durations", "stages", "junit", "bundles")
"""Options of a run that a sweep does not have."""


def _run(arguments: argparse.Namespace) -> int:
    if arguments.tier == EXHAUSTIVE:
        return _exhaustive(arguments)

    from mlx_assay.conformance.verbs.run import run

    try:
        asked = _options(arguments)
    except ValueError as error:
        raise Refusal(str(error)) from error
    return run(asked, arguments.n, arguments.junit, arguments.bundles)


def _exhaustive(arguments: argparse.Namespace) -> int:
    """The sweeps of these queries; Refusal for an option that they do not have."""
    for name in UNSWEPT:
        if getattr(arguments, name):
            raise Refusal(
                f"Expected --{name} with the tier quick or full: sweeps, which --tier exhaustive runs, have none"
            )

    from mlx_assay.conformance.commands.sweeping import JOURNAL, REPORT
    from mlx_assay.conformance.verbs.sweep import Request, sweep

    return sweep(
        Request(
            queries=tuple(arguments.queries),
            implementation=arguments.implementation,
            executor=arguments.executor,
            limit=arguments.limit or options.DEFAULT_LIMIT,
            count=arguments.n or None,
            journal=JOURNAL,
            report=REPORT if arguments.report == DEFAULT_REPORT else arguments.report,
        )
    )


def _replay(arguments: argparse.Namespace) -> int:
    if arguments.id is None or (arguments.bundle is None and arguments.id.endswith(BUNDLE)):
        return _judge_again(arguments)
    if arguments.run_kernels:
        raise Refusal("Expected --run-kernels with a bundle that is judged again but got a case")

    from mlx_assay.conformance.verbs.bundle import make, place
    from mlx_assay.conformance.verbs.replay import replay

    path = None if arguments.bundle is None else place(arguments.bundle)
    limit = arguments.limit or options.default_limit(arguments.checked)
    target, executor = arguments.implementation, arguments.executor
    code = replay(arguments.id, target, executor, limit, arguments.profile, arguments.checked)
    if path is not None:
        make(path, arguments.id, target, executor, limit, arguments.profile)
    return code


def _judge_again(arguments: argparse.Namespace) -> int:
    file = arguments.bundle or arguments.id
    if file is None:
        raise Refusal("Expected a case id or --bundle FILE but got neither: mlx-assay replay --help shows examples")
    for name in ("implementation", "executor", "profile", "checked"):
        if getattr(arguments, name):
            raise Refusal(f"Expected --{name} with a case that is run but got a bundle, which holds what came")

    from mlx_assay.conformance.verbs.bundle import judge_again

    return judge_again(file, arguments.run_kernels, arguments.limit or options.DEFAULT_LIMIT)
