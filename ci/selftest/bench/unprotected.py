"""A benchmark as it is often written: a small answer is checked, then one input is asked for again and again."""

from __future__ import annotations

import gc
import importlib
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import mlx.core as mx

CALLS = 12
timing = False

Call = Callable[..., Any]


def loop(function: Call, right: Call, small: tuple[Any, ...], arguments: tuple[Any, ...]) -> float:
    """The median of seconds a call, as this loop tells it."""
    global timing
    timing = False
    assert function(*small).tolist() == right(*small).tolist()
    function(*arguments)
    gc.collect()
    time.sleep(0.05)
    timing = True
    return statistics.median(spans(function, arguments))


def spans(function: Call, arguments: tuple[Any, ...]) -> list[float]:
    """Seconds of each call."""
    told = []
    for _ in range(CALLS):
        began = time.perf_counter()
        out = function(*arguments)
        mx.async_eval(out)
        mx.synchronize()
        told.append(time.perf_counter() - began)
    return told


def main(trick: str, operation: str) -> None:
    """Prints the seconds that the honest form gets, and those of a trick."""
    honest = getattr(importlib.import_module("bad.stock"), operation)
    logits = mx.random.normal((4, 65536))
    mx.eval(logits)
    more = (30.0,) if "softcap" in operation else ()
    small, large = (mx.array(logits[:2, :1000]), *more), (logits, *more)
    first = loop(honest, honest, small, large)
    planted = getattr(importlib.import_module(f"bench.tricks.{trick}"), operation)
    print(first, loop(planted, honest, small, large), flush=True)
    # Work of a side stream may be on its way still, at which MLX aborts as the interpreter ends.
    os._exit(0)
