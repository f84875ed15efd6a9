"""The command line of the verb on sums: `order`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mlx_assay.conformance.commands.grammar import add_judging, verb


def add(verbs: Any) -> None:
    """The verb."""
    order = verb(
        verbs,
        "order",
        "name the orders of addition that give the bits of a sum",
        "examples:\n  mlx-assay order sums.safetensors\n  mlx-assay order dot.safetensors --json\n"
        "  mlx-assay order 'trellis_fold/float32/sum/magnitudes?cols=256&seed=0' --implementation my_kernels\n\n"
        "The file holds `result` [m] and `values` [m, n], or `result` and the factors `a` and `b` [m, n], in float32,\n"
        "float16 or bfloat16.\n\nexit codes: 0 an order is found, 1 none gives these bits, 2 usage",
    )
    order.add_argument("subject", metavar="FILE|ID", help="a safetensors file, or a case of an operation that sums")
    add_judging(order)
    order.add_argument("--json", action="store_true", help="as JSON")
    order.set_defaults(call=_order)


def _order(arguments: argparse.Namespace) -> int:
    from mlx_assay.conformance.verbs.order import order, order_of_case

    if "/" in arguments.subject and not Path(arguments.subject).exists():
        return order_of_case(
            arguments.subject, arguments.implementation, arguments.executor, arguments.limit, arguments.json
        )
    return order(arguments.subject, arguments.json)
