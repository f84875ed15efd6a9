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
    return launch() if observer is None else observer(definition, launch)
