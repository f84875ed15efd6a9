"""The command line of the verb on reports: `report`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import verb

FORMATS = {
    "html": "one self-contained page: bits, histograms and maps of each failing case",
    "markdown": "for a step's summary or a pull request, 1 MiB at most",
    "text": "for a terminal or a log",
    "ctrf": "Common Test Report Format, JSON",
    "sarif": "SARIF 2.1.0, for code scanning",
    "annotations": "GitHub's ::error lines, 10 at most",
}
ALONE = ("text", "annotations")
"""Renderings that go to standard output where no file is named."""
EPILOG = """examples:
  mlx-assay report mlx-assay-report.json
  mlx-assay report mlx-assay-report.json --html report.html --ctrf ctrf.json
  mlx-assay report mlx-assay-report.json --markdown - | less
  mlx-assay report mlx-assay-report.json --summary --annotations

exit codes: 0 rendered, whatever the report says; 2 usage; 3 not a report, or not one of this version"""


def add(verbs: Any) -> None:
    """The verb."""
    report = verb(verbs, "report", "show a report, or write it as a page, Markdown and other formats", EPILOG)
    report.add_argument("report", metavar="REPORT", help="the JSON document that a run wrote")
    for name, summary in FORMATS.items():
        optional: dict[str, Any] = {"nargs": "?", "const": "-"} if name in ALONE else {}
        report.add_argument(f"--{name}", metavar="FILE", help=summary, **optional)
    report.add_argument(
        "--summary", action="store_true", help="append Markdown to the file that $GITHUB_STEP_SUMMARY names, if any"
    )
    report.set_defaults(call=_report)


def _report(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.report import report

    asked = {name: getattr(arguments, name) for name in FORMATS if getattr(arguments, name) is not None}
    return report(arguments.report, asked, arguments.summary)
