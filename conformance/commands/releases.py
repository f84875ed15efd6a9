"""The command line of the verb on releases of MLX: `versions`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import QUERY_HELP, verb

EPILOG = f"""examples:
  mlx-assay versions 0.32.2 0.32.4
  mlx-assay versions 0.30.6 0.31.2 0.32.2 0.32.4 --json drift.json --markdown drift.md
  mlx-assay versions 0.32.2 0.32.4 'argmax/*' --door metal

{QUERY_HELP}
Each release gets an environment of its own, made once by venv and pip and kept beside the kernel cache.

exit codes: 0 nothing drifted, or rules explain it; 1 a drift without a rule; 2 usage; 3 a release could not be asked"""


def add(verbs: Any) -> None:
    """The verb."""
    versions = verb(verbs, "versions", "name the answers that changed between releases of MLX, and the rule", EPILOG)
    versions.add_argument("words", metavar="RELEASE|QUERY", nargs="+", help="two releases or more, and which inputs")
    versions.add_argument("--json", metavar="FILE", help="write the report as JSON")
    versions.add_argument("--markdown", metavar="FILE", help="write the report as Markdown")
    versions.add_argument(
        "--door", dest="doors", action="append", choices=("cpu", "metal"), default=[], help="one door alone"
    )
    versions.set_defaults(call=_versions)


def _versions(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.versions import versions

    return versions(arguments.words, arguments.doors, arguments.json, arguments.markdown)
