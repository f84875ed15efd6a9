"""The command line of the verb on sums: `order`."""

from __future__ import annotations

import argparse
from typing import Any

from mlx_assay.conformance.commands.grammar import verb


def add(verbs: Any) -> None:
    """The verb."""
    order = verb(
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


def _order(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.order import order

    return order(arguments.file, arguments.json)
