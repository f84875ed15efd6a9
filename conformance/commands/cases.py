"""The command lines of the verbs on cases: `list` and `keep`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import QUERY_HELP, add_queries, verb
from mlx_assay.conformance.verbs.refusal import Refusal


def add(verbs: Any) -> None:
    """Both verbs."""
    _add_list(verbs)
    _add_keep(verbs)


def _add_list(verbs: Any) -> None:
    listing = verb(
        verbs,
        "list",
        "print the ids of the selected cases, or the implementations that installed packages register",
        "examples:\n  mlx-assay list\n  mlx-assay list '*?tag=nan' --tier full\n  mlx-assay list --json\n"
        "  mlx-assay list --implementations\n\n" + QUERY_HELP,
    )
    add_queries(listing)
    listing.add_argument("--json", action="store_true", help="with dtype, tags and reason of each case, as JSON")
    listing.add_argument(
        "--implementations", action="store_true", help="in place of cases, names that --implementation finds installed"
    )
    listing.set_defaults(call=_list)


def _add_keep(verbs: Any) -> None:
    keep = verb(
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


def _list(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.listing import show, show_implementations

    if arguments.implementations:
        if arguments.queries:
            raise Refusal(f"Expected no query beside --implementations but got {arguments.queries[0]!r}")
        return show_implementations(arguments.json)
    return show(arguments.queries, arguments.tier, arguments.seed, arguments.json)


def _keep(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.keep import keep

    try:
        print(keep(arguments.file, arguments.why, arguments.issue))
    except ValueError as error:
        raise Refusal(str(error)) from error
    return 0
