"""Rules on trellis codes by what breaks them: for a diagnosis."""

from __future__ import annotations

from collections.abc import Mapping

from mlx_assay.conformance.contract import Arguments
from mlx_assay.oracles import fused
from mlx_assay.oracles.registry import load

LAYOUT = {
    **dict.fromkeys(("each byte's bits", "each word's bytes", "the two words"), 1),
    **dict.fromkeys(("bits that do not wrap", "positions taken"), 2),
    **dict.fromkeys(("the two blocks", "blocks in reverse", "interleaved codes", "rows in reverse"), 3),
}
RECIPROCAL = ("unrefined", "bits")
WHOLE = ("integer", "state")


def decoded(arguments: Arguments) -> Mapping[str, int]:
    """Of trellis_decode: the form's own rule, unless something else is known."""
    form = arguments["form"] or load("trellis_decode").VARIANTS[arguments["variant"]]
    scaled = ("weights", "the first row's scale", "no scales", "the scale of the row before")
    return {
        "": 7 if form in WHOLE else 6 if form in RECIPROCAL else 5,
        **LAYOUT,
        **dict.fromkeys(scaled, 8),
        "denormals otherwise": 9,
    }


def values(arguments: Arguments) -> Mapping[str, int]:
    """Of trellis_code_values: the form's own rule."""
    form = arguments["form"]
    return {"": 4 if form in WHOLE else 3 if form in RECIPROCAL else 2}


def row(arguments: Arguments) -> Mapping[str, int]:
    """Of rows with splits."""
    orders = [f"the {order} order" for order in fused.ORDERS]
    results = ("sums rounded", "a result cut")
    return {"": 5, **LAYOUT, **dict.fromkeys(orders, 7), **dict.fromkeys(results, 8), "denormals otherwise": 9}


def factored(arguments: Arguments) -> Mapping[str, int]:
    """Of the row that is scaled at the end, where neither an order nor bits are promised."""
    return {"": 5, **LAYOUT}


def folded(arguments: Arguments) -> Mapping[str, int]:
    """Of trellis_fold."""
    orders = [f"the {order} order" for order in fused.ORDERS]
    return {"": 1, **dict.fromkeys(orders, 2), "a result cut": 3, "denormals otherwise": 4}
