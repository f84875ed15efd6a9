"""Who watches kernels run: every launch on the host executor, in whichever thread, goes through one observer."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mlx_assay.impl.executors.signature import Definition


@dataclass(frozen=True)
class Launch:
    """A kernel with the arguments of one call.

    `run` runs it, as often as it is called, and gives its outputs; `skip` gives them as they are before it runs.
    """

    run: Callable[[], list[Any]]
    skip: Callable[[], list[Any]]


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
    return launch.run() if observer is None else observer(definition, launch)
