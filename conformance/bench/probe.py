"""Looks at what a queue of the implementation returned, for tricks that outputs alone do not name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mlx.core as mx

from mlx_assay.conformance.bench import queue
from mlx_assay.conformance.bench.clock import now
from mlx_assay.conformance.bench.digest import Key
from mlx_assay.conformance.bench.message import Alarm

_core: Any = mx
_async_eval, _eval, _synchronize, _now, _id, _len = _core.async_eval, _core.eval, _core.synchronize, now, id, len
_digests, _unsigned = queue.digests, queue.unsigned
LATE = 0.2
"""The share of a queue's work that may be left when its own stream has nothing to do."""
LOOKS = 8
SMALLEST = 200_000
"""Nanoseconds below which what is left is the noise of waiting."""


def rebound(
    results: Sequence[Any], found: Sequence[tuple[int, int]], again: Sequence[tuple[int, int]], key: Key
) -> list[Alarm]:
    """Outputs that changed after the span, or whose objects hold something else than at the call."""
    changing = [index for index, (one, other) in enumerate(zip(found, again, strict=True)) if one != other]
    if changing:
        return [Alarm("deferred", f"the output of call {changing[0] + 1} changed after the timed span")]
    by_now, _ = _digests([_unsigned(result) for result in results], key)
    late = [index for index, (one, other) in enumerate(zip(found, by_now, strict=True)) if one != other]
    if late:
        return [Alarm("deferred", f"{_len(late)} of {_len(found)} outputs were filled after their calls had returned")]
    return []


def reused(results: Sequence[Any]) -> list[Alarm]:
    """One object that was returned by several calls."""
    objects = {_id(result) for result in results}
    if _len(objects) == _len(results):
        return []
    return [Alarm("output-reused", f"{_len(results)} calls returned {_len(objects)} objects")]


def returned(results: Sequence[Any], calls: Sequence[Sequence[Any]]) -> list[Alarm]:
    """Outputs that are an argument's own object."""
    count = 0
    for result, arguments in zip(results, calls, strict=True):
        for argument in arguments:
            count += result is argument
    return [Alarm("input-returned", f"{count} of {_len(results)} calls returned their input")] if count else []


def beside(
    function: Callable[..., Any], calls: Sequence[Sequence[Any]], synchronize: Callable[[], None]
) -> list[Alarm]:
    """Work that goes on when the calls' own stream has nothing to do, each time that it is looked at."""
    shares = []
    for _ in range(LOOKS):
        share = _left(function, calls, synchronize)
        if not share:
            return []
        shares.append(share)
    least = round(100 * min(shares))
    return [Alarm("side-stream", f"{least} % of its work was left when the stream of its calls had nothing to do")]


def _left(function: Callable[..., Any], calls: Sequence[Sequence[Any]], synchronize: Callable[[], None]) -> float:
    """The share of the time that passes after a wait for the stream of the calls alone; 0 for what may be noise."""
    synchronize()
    began = _now()
    results = [function(*arguments) for arguments in calls]
    _async_eval(results)
    _synchronize()
    waited = _now()
    _eval(results)
    synchronize()
    ended = _now()
    _eval(results)
    synchronize()
    left = ended - waited - (_now() - ended)
    return 0.0 if left < SMALLEST or left < LATE * (ended - began) else left / (ended - began)
