"""The command line: one parser, and a call for each verb."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from mlx_assay.conformance import options
from mlx_assay.conformance.checking import command
from mlx_assay.conformance.verbs.refusal import Refusal
from mlx_assay.conformance.verdict import EXIT_CONFORMS, EXIT_INCOMPLETE

DEFAULT_REPORT = "mlx-assay-report.json"
QUERY_HELP = """queries:
  A query is a glob over case paths, operation/dtype/kind, where * crosses slashes; a path alone means all below it.
  After a question mark stand filters on parameters, and on tags by the key tag; a whole case id is a query too.
    apply_token_bitmask            '*/bfloat16/nan*'            'normalized_argmax/*?rows=3&tag=ties'
"""
EXITS = "exit codes: 0 conforms, 1 differs, 2 usage, 3 incomplete"


def parser() -> argparse.ArgumentParser:
    """All verbs with their options."""
    top = argparse.ArgumentParser(
        prog="mlx-assay",
        description="Judges kernels case by case and bit by bit against independent references.",
        epilog=f"{EXITS}\nmlx-assay VERB --help shows examples.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="this suite's version, and MLX's")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_run(verbs)
    command.add(_verb(verbs, "check", command.SUMMARY, command.EPILOG))
    _add_list(verbs)
    _add_replay(verbs)
    _add_keep(verbs)
    _add_order(verbs)
    _add_cache(verbs)
    doctor = _verb(verbs, "doctor", "name each part that is missing or broken, and the command that mends it", "")
    doctor.set_defaults(call=_doctor)
    return top


class _Version(argparse.Action):
    """Asks the installed distributions only where it is wanted."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        told = []
        for name in ("mlx-assay", "mlx"):
            try:
                told.append(f"{name} {version(name)}")
            except PackageNotFoundError:
                told.append(f"{name} is not installed")
        print(", ".join(told))
        parser.exit()


def _verb(verbs: Any, name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog or f"examples:\n  mlx-assay {name}\n\n{EXITS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return verb


def _add_run(verbs: Any) -> None:
    run = _verb(
        verbs,
        "run",
        "judge an implementation on every selected case and write a report",
        "examples:\n  mlx-assay run\n  mlx-assay run 'normalized_argmax/*' --tier full -n 4\n"
        "  mlx-assay run --implementation my_kernels --report mine.json --junit mine.xml\n"
        f"  mlx-assay run --implementation my_package.kernels:fast --executor host\n\n{QUERY_HELP}\n{EXITS}",
    )
    _add_queries(run)
    _add_judging(run)
    run.add_argument("-n", metavar="N", type=_workers, help="processes that judge, or auto (default: cores up to 4)")
    run.add_argument("--report", metavar="FILE", default=DEFAULT_REPORT, help=f"default: {DEFAULT_REPORT}")
    run.add_argument(
        "--without", metavar="ORACLE", action="append", default=[], help="do not ask this oracle; the report names it"
    )
    run.add_argument("--junit", metavar="FILE", help="write JUnit XML too")
    run.set_defaults(call=_run)


def _add_list(verbs: Any) -> None:
    listing = _verb(
        verbs,
        "list",
        "print the ids of the selected cases",
        "examples:\n  mlx-assay list\n  mlx-assay list '*?tag=nan' --tier full\n  mlx-assay list --json\n\n"
        + QUERY_HELP,
    )
    _add_queries(listing)
    listing.add_argument("--json", action="store_true", help="with dtype, tags and reason of each case, as JSON")
    listing.set_defaults(call=_list)


def _add_replay(verbs: Any) -> None:
    replay = _verb(
        verbs,
        "replay",
        "run one case again and show its inputs, each subcase, and both encodings where they differ",
        "examples:\n  mlx-assay replay 'normalized_argmax/bfloat16/ties/tile-edge?rows=3&vocab=1025&seed=7'\n"
        f"  mlx-assay replay 'ID' --implementation my_kernels\n\n{EXITS}",
    )
    replay.add_argument("id", metavar="ID", help="a whole case id, as reports show it")
    _add_judging(replay)
    replay.set_defaults(call=_replay)


def _add_keep(verbs: Any) -> None:
    keep = _verb(
        verbs,
        "keep",
        "keep an input that exploration found as a case of its own",
        "examples:\n  mlx-assay keep mlx-assay-found/logit_softcap-float16.safetensors \\\n"
        "    --why 'A tiny cap divides to infinity'",
    )
    keep.add_argument("file", metavar="FILE", help="a candidate, as a failing exploration names it")
    keep.add_argument("--why", metavar="TEXT", required=True, help="which fault it hunts, in one sentence")
    keep.add_argument("--issue", metavar="URL", default="", help="where the fault is discussed")
    keep.set_defaults(call=_keep)


def _add_order(verbs: Any) -> None:
    order = _verb(
        verbs,
        "order",
        "name the orders of addition that give the bits of a sum",
        "examples:\n  mlx-assay order sums.safetensors\n  mlx-assay order dot.safetensors --json\n\n"
        "The file holds `result` [m] and `values` [m, n], or `result` and the factors `a` and `b` [m, n], in float32,\n"
        "float16 or bfloat16.\n\nexit codes: 0 an order is found, 1 none gives these bits, 2 usage",
    )
    order.add_argument("file", metavar="FILE", help="a safetensors file")
    order.add_argument("--json", action="store_true", help="as JSON")
    order.set_defaults(call=_order)


def _add_cache(verbs: Any) -> None:
    cache = _verb(
        verbs,
        "cache",
        "tell where compiled kernels are kept and how much room they take",
        "examples:\n  mlx-assay cache\n  mlx-assay cache --json\n  mlx-assay cache --clear\n\n"
        "MLX_ASSAY_CACHE names another folder, MLX_ASSAY_CACHE_LIMIT another limit, as 64M or 2G.\n\n"
        "exit codes: 0 it can be used, 3 it cannot",
    )
    cache.add_argument("--clear", action="store_true", help="remove every compiled kernel")
    cache.add_argument("--json", action="store_true", help="as JSON")
    cache.set_defaults(call=_cache)


def _add_queries(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("queries", metavar="QUERY", nargs="*", help="which cases (default: all of the tier)")
    verb.add_argument("--tier", metavar="TIER", default="quick", type=_checked(options.tier), help="quick or full")
    verb.add_argument(
        "--seed", metavar="N", default=0, type=_checked(options.seed), help="draw a fresh set of cases (default: 0)"
    )


def _add_judging(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--implementation",
        metavar="MODULE[:OBJECT]",
        help="what is judged: functions of the operations' names (default: the built-in kernels)",
    )
    verb.add_argument("--executor", metavar="NAME", help="metal or host (default: metal where there is one)")
    verb.add_argument(
        "--limit",
        metavar="SECONDS",
        default=options.DEFAULT_LIMIT,
        type=_checked(options.limit),
        help="seconds that one case may take (default: 60)",
    )


def _checked(check: Callable[[str], Any]) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return checked


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
        limit=arguments.limit,
        without=tuple(arguments.without),
    )


def _run(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.run import run

    try:
        asked = _options(arguments)
    except ValueError as error:
        raise Refusal(str(error)) from error
    return run(asked, arguments.n, arguments.junit)


def _list(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.listing import show

    return show(arguments.queries, arguments.tier, arguments.seed, arguments.json)


def _replay(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.replay import replay

    return replay(arguments.id, arguments.implementation, arguments.executor, arguments.limit)


def _keep(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.keep import keep

    try:
        print(keep(arguments.file, arguments.why, arguments.issue))
    except ValueError as error:
        raise Refusal(str(error)) from error
    return 0


def _order(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.order import order

    return order(arguments.file, arguments.json)


def _cache(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.cache import cache

    return cache(arguments.clear, arguments.json)


def _doctor(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.doctor import doctor

    return doctor()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb and returns its exit code; every refusal is one message on stderr."""
    given, behind = command.split(sys.argv[1:] if argv is None else list(argv))
    arguments = parser().parse_args(given)
    if behind:
        arguments.arguments = behind
    try:
        return int(arguments.call(arguments))
    except Refusal as refusal:
        print(f"mlx-assay: {refusal}", file=sys.stderr)
        return refusal.code
    except KeyboardInterrupt:
        print("mlx-assay: interrupted", file=sys.stderr)
        return EXIT_INCOMPLETE
    except BrokenPipeError:
        # The reader went away with what it wanted; nothing more can be said to it, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_CONFORMS


if __name__ == "__main__":
    sys.exit(main())
