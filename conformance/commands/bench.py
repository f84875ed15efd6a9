"""The command line of `mlx-assay bench`; what it runs is imported when it runs."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.commands.grammar import checked, verb

SUMMARY = "measure an implementation against stock MLX, peers and what the memory allows, once it conforms"
EPILOG = """examples:
  mlx-assay bench --list
  mlx-assay bench 'normalized_argmax/bfloat16?rows=64'     (on a GPU; the host has smaller shapes, see --list)
  mlx-assay bench --implementation my_kernels --json bench.json --markdown bench.md
  mlx-assay bench apply_token_bitmask --dtype float16 --shape rows=8,vocab=151936
  mlx-assay bench --executor host normalized_argmax --against my_kernels

On a GPU it is time that is told, on the host, where time says little, counts of what the kernels do.
docs/benchmarks.md says how, and against what it is protected.

exit codes: 0 measured, 1 differs (also the one of --against), or a trick, 2 usage, 3 incomplete"""
ROUNDS, CALLS, CHECKS = 9, 512, 9
MOST = 100_000


def add(verbs: Any) -> None:
    """The verb."""
    bench = verb(verbs, "bench", SUMMARY, EPILOG)
    bench.add_argument(
        "queries", metavar="BENCHMARK", nargs="*", help="operation/dtype?rows=N&..., globs as for run (default: all)"
    )
    bench.add_argument("--list", action="store_true", help="show the benchmarks, their bytes and peers, and run none")
    bench.add_argument(
        "--implementation",
        metavar="WHAT",
        help="MODULE, MODULE:OBJECT or an entry point (default: the built-in kernels)",
    )
    bench.add_argument("--executor", metavar="NAME", help="metal, cuda or host (default: MLX's GPU, else host)")
    bench.add_argument("--dtype", metavar="NAME", help="in this dtype instead")
    bench.add_argument("--shape", metavar="AXIS=N,...", help="at these sizes instead, others as declared")
    bench.add_argument(
        "--cases",
        metavar="QUERY",
        action="append",
        default=[],
        help="cases that must conform before, as for run (default: the quick ones of each operation)",
    )
    bench.add_argument(
        "--without", metavar="ORACLE", action="append", default=[], help="do not ask this oracle when judging"
    )
    bench.add_argument(
        "--beside",
        metavar="NAME",
        action="append",
        default=[],
        help="only these beside it, a glob, and stock, which is always there; none: stock alone (default: all)",
    )
    bench.add_argument("--against", metavar="WHAT", help="on the host: the implementation whose counts stand beside")
    bench.add_argument(
        "--model",
        metavar="DEVICE",
        action="append",
        default=[],
        help="the modelled device that says which of both does less, h200 or m1-max; repeatable (default: h200)",
    )
    bench.add_argument(
        "--rounds", metavar="N", type=_number, default=ROUNDS, help=f"queues a contender (default: {ROUNDS})"
    )
    bench.add_argument(
        "--calls", metavar="N", type=_number, default=CALLS, help=f"calls of a queue at most (default: {CALLS})"
    )
    bench.add_argument(
        "--checks",
        metavar="N",
        type=_number,
        default=CHECKS,
        help=f"timed outputs of each rotation that the oracle checks, drawn afterwards (default: {CHECKS})",
    )
    bench.add_argument(
        "--limit",
        metavar="SECONDS",
        default=options.DEFAULT_LIMIT,
        type=checked(options.limit),
        help="that a case, or a queue, may take (default: 60)",
    )
    bench.add_argument("--json", metavar="FILE", help="write the report as JSON")
    bench.add_argument("--markdown", metavar="FILE", help="write it as Markdown")
    bench.set_defaults(call=_bench)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MOST):
        raise argparse.ArgumentTypeError(f"Expected a number from 1 to {MOST} but got {text!r}")
    return int(text)


def _bench(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.bench import Request, bench, show

    request = Request(
        queries=tuple(arguments.queries),
        implementation=arguments.implementation,
        executor=arguments.executor,
        dtype=arguments.dtype,
        shape=arguments.shape,
        cases=tuple(arguments.cases),
        without=tuple(arguments.without),
        against=arguments.against,
        models=tuple(dict.fromkeys(arguments.model)),
        beside=tuple(arguments.beside),
        rounds=arguments.rounds,
        calls=arguments.calls,
        checks=arguments.checks,
        limit=arguments.limit,
        json=arguments.json,
        markdown=arguments.markdown,
    )
    return show(request) if arguments.list else bench(request)
