"""What the verbs' command lines have in common."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from mlx_assay.conformance import options

EXITS = "exit codes: 0 conforms, 1 differs, 2 usage, 3 incomplete"
QUERY_HELP = """queries:
  A query is a glob over case paths, operation/dtype/kind, where * crosses slashes; a path alone means all below it.
  After a question mark stand filters on parameters, and on tags by the key tag; a whole case id is a query too.
    apply_token_bitmask            '*/bfloat16/nan*'            'normalized_argmax/*?rows=3&tag=ties'
"""


class Once(argparse._StoreAction):
    """An option that stands once: of two, one would hold and nobody be told which."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        given: frozenset[str] = getattr(namespace, "_given", frozenset())
        if option and self.dest in given:
            parser.error(f"expected {option} once but it is given again")
        namespace._given = given | {self.dest}
        super().__call__(parser, namespace, values, option)


def verb(verbs: Any, name: str, summary: str, epilog: str, strict: bool = False) -> argparse.ArgumentParser:
    """A verb's parser; `epilog` is what stands under its options, by default an example and the exit codes.

    A `strict` one takes each option once, and no beginning of its name for it.
    """
    made: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        epilog=epilog or f"examples:\n  mlx-assay {name}\n\n{EXITS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=not strict,
    )
    if strict:
        for action in (None, "store"):
            made.register("action", action, Once)
    return made


EXHAUSTIVE = "exhaustive"
"""What `run` takes for a tier, and does as `sweep`."""


def add_queries(parser: argparse.ArgumentParser, *, exhaustive: bool = False) -> None:
    """Which cases; with `exhaustive` a third tier, that of sweeps."""
    parser.add_argument("queries", metavar="QUERY", nargs="*", help="which cases (default: all of the tier)")

    def tier(text: str) -> str:
        return text if exhaustive and text == EXHAUSTIVE else options.tier(text)

    more = f"; {EXHAUSTIVE} is the verb sweep" if exhaustive else ""
    parser.add_argument("--tier", metavar="TIER", default="quick", type=checked(tier), help=f"quick or full{more}")
    parser.add_argument(
        "--seed", metavar="N", default=0, type=checked(options.seed), help="draw a fresh set of cases (default: 0)"
    )


def add_judging(parser: argparse.ArgumentParser) -> None:
    """What is judged, where, and how long a case may take."""
    parser.add_argument(
        "--implementation",
        metavar="WHAT",
        help="what is judged: MODULE or MODULE:OBJECT with functions of the operations' names, the NAME under which an "
        "installed package registers them, or 'cmd: PROGRAM ARGUMENT...', which speaks the protocol of "
        "docs/adapters.md (default: the built-in kernels)",
    )
    parser.add_argument("--executor", metavar="NAME", help="metal, cuda or host (default: MLX's GPU, else host)")
    add_profile(parser)
    parser.add_argument(
        "--limit",
        metavar="SECONDS",
        default=options.DEFAULT_LIMIT,
        type=checked(options.limit),
        help="seconds that one case may take (default: 60)",
    )


def add_checked(parser: argparse.ArgumentParser) -> None:
    """Whether kernels run under the checker, which takes more time: a limit that is not given is then another."""
    parser.add_argument(
        "--checked",
        action="store_true",
        help="run every kernel under the checker, on the executor host: what it finds is the case's error "
        "(default --limit: 300)",
    )
    parser.set_defaults(limit=None)


def add_profile(parser: argparse.ArgumentParser) -> None:
    """What the host executor takes its switches from."""
    parser.add_argument("--profile", metavar="FILE", help="a capture of a device, whose switches host takes")


def checked(check: Callable[[str], Any]) -> Callable[[str], Any]:
    """A type for argparse from a function that raises ValueError."""

    def read(text: str) -> Any:
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
