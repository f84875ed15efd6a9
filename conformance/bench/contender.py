"""Contenders in the measuring process: the implementation's function, and the peers' made for one shape."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mlx_assay.conformance.bench.message import Prepare, Seat

IMPLEMENTATION = ""
"""The name under which the implementation runs."""


class Contestant(NamedTuple):
    """What is called, and whose arrays it gets."""

    function: Callable[..., Any]
    library: str = "mlx"


def seated(order: Prepare, functions: Mapping[str, Callable[..., Any]]) -> tuple[dict[str, Contestant], dict[str, str]]:
    """Those that are there by name, the implementation first, and why the others are not."""
    found = {IMPLEMENTATION: Contestant(functions[order.operation])}
    missing: dict[str, str] = {}
    for seat in order.seats:
        try:
            found[seat.name] = Contestant(_made(seat, order.shape, order.dtype), seat.library)
        except Exception as error:  # whatever a peer's library does, the others are measured
            missing[seat.name] = f"{type(error).__name__}: {error}"[:300]
    return found, missing


def _made(seat: Seat, shape: Mapping[str, int], dtype: str) -> Callable[..., Any]:
    for name in seat.needs:
        importlib.import_module(name)
    module, _, function = seat.place.partition(":")
    made: Callable[..., Any] = getattr(importlib.import_module(module), function)(dict(shape), dtype)
    return made
