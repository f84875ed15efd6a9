"""The command line of the verb on files of tensors: `bits`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import checked, verb


def add(verbs: Any) -> None:
    """The verb."""
    bits = verb(
        verbs,
        "bits",
        "compare the tensors of two files bit by bit, and say what differing places have in common",
        "examples:\n  mlx-assay bits mine.safetensors theirs.safetensors\n  mlx-assay bits out.npy expected.npy\n"
        "  mlx-assay bits a.safetensors b.safetensors --names lm_head.weight --json bits.json\n"
        "  mlx-assay bits case.safetensors case.safetensors --names got.first='want.stock-mlx 0.32.4 cpu' --ulps 1\n\n"
        "Files are safetensors, or npy without objects, of 1 GiB at most. Encodings are compared: +0 and -0\n"
        "differ, and so do two NaNs of other bits.\n\n"
        "exit codes: 0 the same bits, 1 differs, 2 usage, 3 nothing was compared",
    )
    bits.add_argument("first", metavar="A", help="what came")
    bits.add_argument("second", metavar="B", help="what is expected")
    bits.add_argument(
        "--names", metavar="NAME[=OTHER]", nargs="+", default=[], help="which tensors (default: all, by their names)"
    )
    bits.add_argument(
        "--ulps",
        metavar="N",
        type=checked(_distance),
        help="units in the last place that pass, told in the output (default: none passes)",
    )
    bits.add_argument("--json", metavar="FILE", help="write the comparison as JSON too")
    bits.set_defaults(call=_bits)


def _distance(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:20]) < 2**31):
        raise ValueError(f"Expected a distance, a whole number from 1 to {2**31 - 1}, but got {text!r}")
    return int(text)


def _bits(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.bits import bits

    return bits(arguments.first, arguments.second, arguments.names, arguments.ulps, arguments.json)
