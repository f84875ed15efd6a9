"""The command lines of the verbs that decide from reports: `gate` and `merge`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import EXITS, verb

GATE = f"""examples:
  mlx-assay gate report.json --policy ci/gate.toml --commit "$(git rev-parse HEAD)"
  mlx-assay gate m1.json m4.json smoke.json --policy gate.toml --commit SHA --markdown "$GITHUB_STEP_SUMMARY"
  mlx-assay gate *.json --policy gate.toml --commit SHA --artefact dist/kernels.tgz --statement statement.json

docs/gate.md tells what a policy may ask.
A report that is damaged, missing or of another run leaves the gate incomplete.

{EXITS}"""
MERGE = f"""examples:
  mlx-assay merge shard-1.json shard-2.json shard-3.json --report report.json

Every shard of one run has to be there, once.

{EXITS}"""


def add(verbs: Any) -> None:
    """Both verbs."""
    gate = verb(
        verbs,
        "gate",
        "hold reports of several legs against a policy, and say whether a release conforms",
        GATE,
        strict=True,
    )
    gate.add_argument("reports", metavar="REPORT", nargs="+", help="reports of legs, whole or in shards")
    gate.add_argument("--policy", metavar="FILE", required=True, help="what is needed, in TOML")
    gate.add_argument("--commit", metavar="SHA", help="the commit that every report must be of")
    gate.add_argument(
        "--artefact", metavar="FILE|[NAME@]sha256:HEX", help="what is to be released, which a statement is about"
    )
    gate.add_argument("--statement", metavar="FILE", help="write an in-toto statement of the result")
    gate.add_argument("--predicate", metavar="FILE", help="write its predicate alone, for actions/attest")
    gate.add_argument("--url", metavar="URL", help="where the run can be looked at, for the statement")
    gate.add_argument(
        "--now", metavar="TIME", help="the time to judge ages by, ISO 8601 with offset (default: the clock's)"
    )
    gate.add_argument("--mutants", metavar="FILE", help="a report of mlx-assay mutate, where the policy asks for one")
    gate.add_argument("--json", metavar="FILE", help="write the decision as JSON")
    gate.add_argument("--markdown", metavar="FILE", help="write it as Markdown")
    gate.set_defaults(call=_gate)
    merge = verb(verbs, "merge", "put the shards of one run together into one report", MERGE, strict=True)
    merge.add_argument("reports", metavar="REPORT", nargs="+", help="reports of runs with --shard")
    merge.add_argument("--report", metavar="FILE", required=True, help="file to write the whole report to")
    merge.set_defaults(call=_merge)


def _gate(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.gate import Request, gate

    names = ("policy", "commit", "artefact", "statement", "predicate", "url", "now", "json", "markdown", "mutants")
    return gate(Request(reports=arguments.reports, **{name: getattr(arguments, name) for name in names}))


def _merge(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.merge import merge

    return merge(arguments.reports, arguments.report)
