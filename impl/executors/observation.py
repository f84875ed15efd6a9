"""Who watches kernels run: every launch on the host executor, in whichever thread, goes through one observer.

A recorder is told before and afterwards, of launches on any executor.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from mlx_assay.impl.executors.signature import Definition


class Launch(NamedTuple):
    """A kernel with the arguments of one call.

    `run` runs it, as often as it is called, and gives its outputs; `skip` gives them as they are before it runs.
    """

    run: Callable[[], list[Any]]
    skip: Callable[[], list[Any]]


class Call(NamedTuple):
    """What a kernel was called with: the arguments of the object that mx.fast.metal_kernel returns."""

    inputs: Sequence[Any]
    output_shapes: Sequence[Sequence[int]]
    output_dtypes: Sequence[Any]
    grid: Sequence[int]
    threadgroup: Sequence[int]
    template: Sequence[tuple[str, Any]]
    init_value: float | None


Observer = Callable[[Definition, Launch], list[Any]]
"""Gets a kernel and its launch, and gives the outputs that the kernel's caller shall see."""

Listener = Callable[[Definition], object]
"""Gets a kernel's definition where it is made, or where it is called before its arguments are evaluated."""

Recorder = Callable[[Definition, Call, list[Any] | None], object]
"""Gets a kernel and what it is called with before the launch, and what it gave besides afterwards.

None stands for outputs before the launch; on Metal they may not be evaluated afterwards. One that fails has no second.
"""


class Planter(Protocol):
    """Who plants a fault in kernels, to learn whether it is noticed."""

    def made(self, definition: Definition) -> Definition:
        """What a kernel is made of instead."""

    def launched(self, definition: Definition) -> None:
        """Hears of a kernel that is called."""


_planter: Planter | None = None
_observer: Observer | None = None
_recorder: Recorder | None = None
_listener: Listener | None = None
_caller: Listener | None = None


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Launches go through `observer` alone while this holds, in the whole process; then through the one before."""
    global _observer
    before, _observer = _observer, observer
    try:
        yield
    finally:
        _observer = before


def launched(definition: Definition, launch: Launch) -> list[Any]:
    """The outputs of a launch, through the observer where there is one."""
    observer = _observer
    return launch.run() if observer is None else observer(definition, launch)


@contextlib.contextmanager
def listening(listener: Listener, caller: Listener | None = None) -> Iterator[None]:
    """Definitions are told to `listener` alone while this holds, in the whole process; then to the one before.

    So are calls to `caller`, which may raise what the kernel's caller shall see.
    """
    global _listener, _caller
    before = _listener, _caller
    _listener, _caller = listener, caller
    try:
        yield
    finally:
        _listener, _caller = before


def plant(planter: Planter) -> None:
    """From now on kernels of this process are made as `planter` says."""
    global _planter
    _planter = planter


def made(definition: Definition) -> Definition:
    """What a kernel is made of."""
    return definition if _planter is None else _planter.made(definition)


def defined(definition: Definition) -> None:
    """Tells a kernel's definition to whoever listens."""
    if (listener := _listener) is not None:
        listener(definition)


def called(definition: Definition) -> None:
    """Tells of a call before anything of MLX runs for it."""
    if (caller := _caller) is not None:
        caller(definition)


@contextlib.contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Launches are told to `recorder` alone while this holds, in the whole process."""
    global _recorder
    before, _recorder = _recorder, recorder
    try:
        yield
    finally:
        _recorder = before


def begun(definition: Definition, call: Call) -> None:
    """Tells whoever records, or plants, of a launch that is to come."""
    if (planter := _planter) is not None:
        planter.launched(definition)
    if (recorder := _recorder) is not None:
        recorder(definition, call, None)


def recorded(definition: Definition, call: Call, outputs: list[Any]) -> list[Any]:
    """The outputs, told to whoever records."""
    if (recorder := _recorder) is not None:
        recorder(definition, call, outputs)
    return outputs
