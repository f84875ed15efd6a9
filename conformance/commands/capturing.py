"""The command line of the verb on devices: `capture`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import verb
from mlx_assay.conformance.verbs.refusal import Refusal

DEFAULT_FILE = "mlx-assay-capture.json"


def add(verbs: Any) -> None:
    """The verb."""
    capture = verb(
        verbs,
        "capture",
        "record what a device does where no specification says it",
        "examples:\n  mlx-assay capture\n  mlx-assay capture --executor metal -o m3-max.json\n"
        "  mlx-assay capture --without 'limits.*' --without sweeps\n  mlx-assay capture --show m3-max.json\n"
        "  mlx-assay capture --compare m1.json m3-max.json\n  mlx-assay run --profile m3-max.json --executor host\n\n"
        "exit codes: 0 recorded, or alike, 1 the two differ, 2 usage, or no sound capture, 3 not to the end",
    )
    capture.add_argument("--executor", metavar="NAME", help="metal, cuda or host (default: MLX's GPU, else host)")
    capture.add_argument("-o", "--output", metavar="FILE", help=f"default: {DEFAULT_FILE}")
    capture.add_argument(
        "--without",
        metavar="NAME",
        action="append",
        default=[],
        help="leave out probes of this name (a glob), or sweeps; may be given several times",
    )
    instead = capture.add_mutually_exclusive_group()
    instead.add_argument("--show", metavar="FILE", help="show a capture, and record none")
    instead.add_argument("--compare", metavar="FILE", nargs=2, help="say what differs between two captures")
    capture.set_defaults(call=call)


def call(arguments: argparse.Namespace) -> int:
    """Records, shows or compares; returns the exit code."""
    from mlx_assay.conformance.verbs import capture

    if arguments.show is None and arguments.compare is None:
        file = DEFAULT_FILE if arguments.output is None else arguments.output
        return capture.capture(arguments.executor, file, arguments.without)
    if arguments.executor is not None or arguments.output is not None or arguments.without:
        raise Refusal("Expected --show or --compare alone but got options of a new capture beside it")
    if arguments.show is not None:
        return capture.show(arguments.show)
    return capture.compare(*arguments.compare)
