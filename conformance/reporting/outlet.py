"""Standard output whose reader may go away, or whose device may be full, without costing a verb its result."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Outlet(io.FileIO):
    """A descriptor that takes every write. What a reader that went away does not read is lost without a word.

    `failure` is why anything else was lost (no space left, say), or empty.
    """

    failure = ""

    def write(self, data: object, /) -> int:
        """The length of `data`, whether it was written or lost."""
        try:
            return super().write(data) or 0  # type: ignore[arg-type]
        except BrokenPipeError:
            pass
        except OSError as error:
            self.failure = error.strerror or str(error)
        return len(memoryview(data))  # type: ignore[arg-type]


def opened(descriptor: int, like: io.TextIOWrapper) -> tuple[io.TextIOWrapper, Outlet]:
    """A text stream on a copy of the descriptor, with the encoding of another, and its outlet."""
    raw = Outlet(os.dup(descriptor), "w")
    stream = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=like.encoding, errors="backslashreplace", line_buffering=like.line_buffering
    )
    return stream, raw


@contextmanager
def patient() -> Iterator[list[str]]:
    """Standard output through an outlet; the list holds, afterwards, why something could not be written."""
    lost: list[str] = []
    own = sys.stdout
    if own is not sys.__stdout__ or not isinstance(own, io.TextIOWrapper):
        yield lost
        return
    own.flush()
    stream, raw = opened(own.fileno(), own)
    sys.stdout = stream
    try:
        yield lost
    finally:
        sys.stdout = own
        stream.close()
        if raw.failure:
            lost.append(raw.failure)
