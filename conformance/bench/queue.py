"""A queue of calls, timed: nothing of what an implementation could replace is looked up while it runs.

Some outputs, drawn before, are taken hold of at the call, by a view of their bits: one that is filled, or bound to
something else, later is then another.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import mlx.core as mx

from mlx_assay.conformance.bench.clock import now, raw
from mlx_assay.conformance.bench.digest import Key, OnDevice

_core: Any = mx
_array, _eval, _async_eval, _synchronize = _core.array, _core.eval, _core.async_eval, _core.synchronize
_view = _core.array.view
_dtype_of, _nbytes_of, _shape_of = _array.dtype.fget, _array.nbytes.fget, _array.shape.fget
_size_of: Any = type(_core.float32).size.fget
_name_of: Any = type(_core.float32).__repr__
_class_name: Any = type.__dict__["__name__"].__get__
_unsigned = {1: _core.uint8, 2: _core.uint16, 4: _core.uint32, 8: _core.uint64}
_type, _len, _str, _list = type, len, str, list
_urandom, _now, _raw = os.urandom, now, raw
on_device = _on_device = OnDevice(_core)
_from_bytes = int.from_bytes
_random, _sorted = random.SystemRandom(), sorted
_collect, _disable, _enable = gc.collect, gc.disable, gc.enable


class Strange(Exception):
    """A call returned something that is no plain mx.array."""

    def __init__(self, call: int, kind: str) -> None:
        super().__init__(kind)
        self.call = call
        self.kind = kind


class Failed(Exception):
    """A call raised."""

    def __init__(self, call: int, error: BaseException) -> None:
        super().__init__(call)
        self.call = call
        self.error = error


class Span(NamedTuple):
    """Nanoseconds of the spans of a queue; see message.Timed."""

    called: int
    evaluated: int
    total: int
    raw: int
    lazy: bool


class Ran(NamedTuple):
    """What came of a queue: the objects that were returned, and of some calls views of their bits as of the call."""

    span: Span
    results: list[Any]
    taken: list[Any]


WATCHED = 16

Calls = Sequence[Sequence[Any]]
"""The arguments of each call."""


def quiet(synchronize: Callable[[], None]) -> None:
    """Leaves nothing to do: no garbage, nothing on the device, and the collector off until `loud`."""
    _collect()
    _disable()
    synchronize()


loud = _enable


def run(
    function: Callable[..., Any],
    calls: Iterable[Sequence[Any]],
    synchronize: Callable[[], None],
    untouched: Callable[[], bool],
    watched: Sequence[bool],
) -> Ran:
    """Times a queue of MLX calls. Strange, Failed: what a call did instead of returning an array.

    Of `watched` calls the output is taken hold of: a view of all would cost each call an operation.
    """
    results: list[Any] = []
    taken: list[Any] = []
    keep, hold = results.append, taken.append
    call = 0
    synchronize()
    began_raw = _raw()
    began = _now()
    try:
        for arguments in calls:
            result = function(*arguments)
            if _type(result) is not _array:
                raise Strange(call, _str(_class_name(_type(result))))
            keep(result)
            if watched[call]:
                hold(_view(result, _unsigned[_size_of(_dtype_of(result))]))
            call += 1
    except Strange:
        raise
    except BaseException as error:
        raise Failed(call, error) from error
    called = _now()
    lazy = untouched()
    looked = _now()
    _eval(results, taken)
    synchronize()
    ended = _now()
    ended_raw = _raw()
    span = Span(called - began, ended - looked, ended - began, ended_raw - began_raw, lazy)
    return Ran(span, results, taken)


def run_torch(function: Callable[..., Any], calls: Calls, synchronize: Callable[[], None]) -> Ran:
    """Times a queue of a peer's calls on torch arrays; what it returns is kept, not judged."""
    results: list[Any] = []
    synchronize()
    began_raw = _raw()
    began = _now()
    for arguments in calls:
        results.append(function(*arguments))
    called = _now()
    synchronize()
    ended = _now()
    return Ran(Span(called - began, ended - called, ended - began, _raw() - began_raw, False), results, [])


def noted(calls: Calls, launches: Sequence[Any], before: list[int]) -> Iterator[Sequence[Any]]:
    """The same calls; `before` gets how many launches there were before each, and after the last."""
    for arguments in calls:
        before.append(_len(launches))
        yield arguments
    before.append(_len(launches))


def drawn(count: int) -> list[int]:
    """Which calls of a queue are watched: one in WATCHED, two at least, rising, drawn so that nobody knows them."""
    wanted = min(count, max(2, count // WATCHED))
    return _sorted(_random.sample(range(count), wanted))


def key() -> Key:
    """A key that nobody could know before."""
    return _from_bytes(_urandom(4), "little"), _from_bytes(_urandom(4), "little")


def digests(bits: Sequence[Any], drawn: Key) -> tuple[list[tuple[int, int]], int]:
    """The digest of each, read to the host, and the nanoseconds that it took."""
    began = _now()
    found = [_on_device(each, drawn) for each in bits]
    return found, _now() - began


def unsigned(result: Any) -> Any:
    """A view of an array's bits as it is now."""
    return _view(result, _unsigned[_size_of(_dtype_of(result))])


def told(result: Any) -> tuple[str, list[int], int]:
    """Dtype, shape and bytes of an array."""
    return _name_of(_dtype_of(result)).removeprefix("mlx.core."), _list(_shape_of(result)), _nbytes_of(result)
