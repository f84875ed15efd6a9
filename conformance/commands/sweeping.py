"""The command line of `mlx-assay sweep`; what it runs is imported when it runs."""

from __future__ import annotations

import argparse
import re
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.commands.grammar import EXITS, checked, verb
from mlx_assay.conformance.verbs.refusal import Refusal

SUMMARY = "judge an implementation on every input of a range, in chunks that a journal keeps"
EPILOG = f"""examples:
  mlx-assay sweep --list
  mlx-assay sweep 'compiled_logit_softcap/float32/every/encoding?cap=30' -n 2
  mlx-assay sweep '*/bfloat16' --implementation my_kernels --journal night --report night.json
  mlx-assay sweep '*/bfloat16' --implementation my_kernels --journal night --report night.json --resume
  mlx-assay sweep 'logit_softcap/float32' --chunks 0:4
  mlx-assay sweep --scheduler tcp://10.0.0.1:8786

A campaign that was broken off goes on where it was with --resume. run --tier exhaustive is the same as sweep.

{EXITS}"""
JOURNAL, REPORT = "mlx-assay-sweep", "mlx-assay-sweep.json"
MOST_PROCESSES = 256


def add(verbs: Any) -> None:
    """The verb."""
    sweep = verb(verbs, "sweep", SUMMARY, EPILOG)
    sweep.add_argument("queries", metavar="QUERY", nargs="*", help="which sweeps, as for run (default: all)")
    sweep.add_argument("--list", action="store_true", help="show the sweeps, their inputs and chunks, and run none")
    sweep.add_argument(
        "--implementation", metavar="WHAT", help="what is judged, as for run (default: the built-in kernels)"
    )
    sweep.add_argument("--executor", metavar="NAME", help="metal, cuda or host (default: MLX's GPU, else host)")
    sweep.add_argument(
        "--limit",
        metavar="SECONDS",
        default=options.DEFAULT_LIMIT,
        type=checked(options.limit),
        help="that one call may take (default: 60)",
    )
    sweep.add_argument("-n", metavar="N", type=_count, help="processes (default: cores up to 4)")
    sweep.add_argument("--scheduler", metavar="ADDRESS", help="run chunks on the Dask cluster of this scheduler")
    sweep.add_argument("--journal", metavar="DIR", default=JOURNAL, help=f"keeps finished chunks (default: {JOURNAL})")
    sweep.add_argument("--resume", action="store_true", help="go on with the campaign that the journal holds")
    sweep.add_argument("--report", metavar="FILE", default=REPORT, help=f"default: {REPORT}")
    sweep.add_argument(
        "--chunks", metavar="A:B", type=checked(chunks), help="only chunks A to B - 1 of each sweep; the report says so"
    )
    sweep.add_argument(
        "--every-oracle", action="store_true", help="ask every oracle for every input, where a sieve would answer"
    )
    sweep.set_defaults(call=_sweep)


def chunks(text: str) -> tuple[int, int]:
    """ "A:B" as numbers. ValueError: it says something else, or nothing lies between."""
    found = re.fullmatch(r"([0-9]{1,9}):([0-9]{1,9})", text)
    if not found or not int(found[1]) < int(found[2]):
        raise ValueError(f"Expected numbers of chunks as A:B, A below B, but got {text!r}")
    return int(found[1]), int(found[2])


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PROCESSES):
        raise argparse.ArgumentTypeError(f"Expected a number of processes, 1 to {MOST_PROCESSES}, but got {text!r}")
    return int(text)


def _sweep(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.sweep import Request, show, sweep

    if arguments.list:
        return show(arguments.queries)
    if arguments.scheduler is not None and arguments.n is not None:
        raise Refusal("Expected -n or --scheduler but got both: a cluster has the workers that it has")
    return sweep(
        Request(
            queries=tuple(arguments.queries),
            implementation=arguments.implementation,
            executor=arguments.executor,
            limit=arguments.limit,
            count=arguments.n,
            scheduler=arguments.scheduler,
            journal=arguments.journal,
            resume=arguments.resume,
            report=arguments.report,
            chunks=arguments.chunks,
            every=arguments.every_oracle,
        )
    )
