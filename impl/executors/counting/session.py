"""Counted launches: each once, and what it did is kept."""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

from mlx_assay.impl.executors.counting.counts import Counts

_current: ContextVar[list[Counts] | None] = ContextVar("mlx_assay_counting", default=None)


class CountingError(RuntimeError):
    """A launch that cannot be counted."""


def current() -> list[Counts] | None:
    """Where the counts of launches go, where they run inside `counted`."""
    return _current.get()


@contextlib.contextmanager
def counted() -> Iterator[list[Counts]]:
    """Kernels called inside are counted, on the host executor alone; the list grows by one `Counts` a launch.

    Outputs are those of a launch that is not counted, bit for bit. CountingError, where a kernel is called: it runs on
    another executor or under the checker, or is one of Apple's own, or there is no memory for its counts.
    """
    counts: list[Counts] = []
    token = _current.set(counts)
    try:
        yield counts
    finally:
        _current.reset(token)


def refuse(name: str, where: str, mend: str = "call it inside executors.use('host')") -> None:
    """CountingError: launches are counted, and this one runs where they cannot be."""
    if _current.get() is not None:
        raise CountingError(
            f"[metal_kernel] kernel {name!r} runs on {where}, and what a kernel does is counted on the executor 'host' "
            f"alone: {mend}"
        )
