"""The command line of the verb on two reports: `diff`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import verb

EPILOG = """examples:
  mlx-assay diff before.json after.json
  mlx-assay diff m3-max.json m5.json --markdown "$GITHUB_STEP_SUMMARY"
  mlx-assay diff mlx-0.32.3.json mlx-0.32.4.json --json changed.json

exit codes: 0 nothing fails that did not fail so before, 1 a case fails anew or with other bits, 2 usage,
3 a report is incomplete, or cases are gone"""


def add(verbs: Any) -> None:
    """The verb."""
    diff = verb(
        verbs,
        "diff",
        "tell what changed between two reports: of two versions of an implementation, of MLX, or two devices",
        EPILOG,
        strict=True,
    )
    diff.add_argument("old", metavar="OLD", help="a report of `mlx-assay run`")
    diff.add_argument("new", metavar="NEW", help="another, later or of elsewhere")
    diff.add_argument("--json", metavar="FILE", help="write the whole difference as JSON too")
    diff.add_argument("--markdown", metavar="FILE", help="write it as Markdown too, as for a step summary")
    diff.set_defaults(call=_diff)


def _diff(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.diff import diff

    return diff(arguments.old, arguments.new, arguments.json, arguments.markdown)
