"""The command line of the verb on recorded references: `fixtures`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import verb
from mlx_assay.conformance.verbs.refusal import Refusal

CODES = "exit codes: 0 all holds, 1 a fault or a rejected case, 2 usage, 3 a library is missing or something waits"


def add(verbs: Any) -> None:
    """The verb and its actions; without one it checks."""
    top = verb(
        verbs,
        "fixtures",
        "hold recorded references to their oracles, and regenerate them",
        "examples:\n  mlx-assay fixtures\n  mlx-assay fixtures regen 'apply_token_bitmask/*'\n"
        "  mlx-assay fixtures review\n  mlx-assay fixtures export --out dist\n\n" + CODES,
    )
    top.set_defaults(call=_check)
    actions = top.add_subparsers(dest="action", metavar="ACTION")
    _action(actions, "check", "compute every golden again and compare; writes nothing (default)", _check)
    regen = _action(actions, "regen", "write .new files beside the goldens that changed", _regen)
    regen.add_argument("queries", metavar="QUERY", nargs="*", help="groups, cases, or real (default: everything)")
    review = _action(actions, "review", "show what waits, in bits and ULP, and accept or reject each case", _review)
    review.add_argument("--accept", action="store_true", help="accept all that waits, for scripts")
    promote = _action(actions, "promote", "make a failing or found case a fixture", _promote)
    promote.add_argument("what", metavar="FILE|ID", help="a candidate of exploration, a case id, or a report's JSON")
    promote.add_argument("--why", metavar="TEXT", required=True, help="which fault it hunts, in one sentence")
    promote.add_argument("--issue", metavar="URL", default="", help="where the fault is discussed")
    promote.add_argument("--subcase", metavar="LABEL", help="which call of a case (default: a report's, or each)")
    adopt = _action(actions, "adopt", "keep a device's capture as the golden of its class", _adopt)
    adopt.add_argument("file", metavar="FILE", help="what mlx-assay capture wrote on that device")
    export = _action(actions, "export", "make a release tarball and an npm package of the vectors", _export)
    export.add_argument("--out", metavar="FOLDER", default="dist", help="default: dist")


def _action(actions: Any, name: str, summary: str, call: Any) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = actions.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(call=call)
    return made


def _check(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.fixtures import check

    return check()


def _regen(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.fixtures import regen

    return regen(arguments.queries)


def _review(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.fixtures import settle

    return settle(arguments.accept)


def _promote(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.promote import promote

    try:
        return promote(arguments.what, arguments.why, arguments.issue, arguments.subcase)
    except ValueError as error:
        raise Refusal(str(error)) from error


def _adopt(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.fixtures import keep_capture

    return keep_capture(arguments.file)


def _export(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.export import export

    return export(arguments.out)
