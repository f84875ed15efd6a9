"""The channel of a process of an implementation: the two pipes to its judge, bound before anything else is imported."""

from __future__ import annotations

import os

import msgspec

from mlx_assay.conformance import stopwatch
from mlx_assay.conformance.process.protocol import LINE_LIMIT, line

_read, _write, _line, _stage = os.read, os.write, line, stopwatch.stage


class Channel:
    """The two pipes to the judge."""

    def __init__(self, orders: int, replies: int) -> None:
        self._orders = orders
        self._replies = replies
        self._buffer = bytearray()

    def receive(self) -> bytes | None:
        """The next line, or None once the judge has closed its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            with _stage("idle"):
                data = _read(self._orders, LINE_LIMIT)
            if not data:
                return None
            self._buffer += data
        text = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return text

    def send(self, *replies: msgspec.Struct) -> None:
        """Writes a line for each, all at once."""
        data = memoryview(b"".join(map(_line, replies)))
        while data:
            data = data[_write(self._replies, data) :]
