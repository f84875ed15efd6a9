"""Who watches kernels run: every launch on the host executor, in whichever thread, goes through one observer."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from mlx_assay.impl.executors.signature import Definition

Launch = Callable[[], list[Any]]
"""Runs a kernel once on the arguments that it was called with, as often as it is called; gives its outputs."""

Observer = Callable[[Definition, Launch], list[Any]]
"""Gets a kernel and its launch, and gives the outputs that the kernel's caller shall see."""

_observer: Observer | None = None


@contextlib.contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Launches go through `observer` while this holds, in the whole process. RuntimeError: there is one already."""
    global _observer
    if _observer is not None:
        raise RuntimeError("expected launches without an observer but one is there: leave its observed() first")
    _observer = observer
    try:
        yield
    finally:
        _observer = None


def launched(definition: Definition, launch: Launch) -> list[Any]:
    """The outputs of a launch, through the observer where there is one."""
    observer = _observer
    return launch() if observer is None else observer(definition, launch)
