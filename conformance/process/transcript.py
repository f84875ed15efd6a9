"""What a child prints: drained so that no flood blocks it, and the end of it kept."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
import threading
import time

from mlx_assay.conformance.quotation import legible

KEPT = 1 << 16
"""Bytes that are kept: the last ones."""

SETTLING_SECONDS = 0.2
"""How long to wait for the listener to take what lies in the pipe already."""


class Transcript:
    """The output of one process, listened to by a thread of its own until every writer has closed the pipe."""

    def __init__(self, descriptor: int) -> None:
        self.kept = bytearray()
        self._count = 0
        self._lock = threading.Lock()
        self._descriptor = descriptor
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def mark(self) -> int:
        """How many bytes have come so far."""
        return self._count

    def text(self, mark: int, limit: int) -> str:
        """The last characters of what came after a mark, fit to be shown."""
        with self._lock:
            count = min(self._count - mark, len(self.kept), 4 * limit)
            data = bytes(self.kept[len(self.kept) - count :])
        text = data.decode("utf-8", "replace")[-limit:]
        return legible(text, limit).strip()

    def settle(self) -> None:
        """Waits until what was printed before this call is taken in."""
        deadline = time.monotonic() + SETTLING_SECONDS
        while self._waiting() and time.monotonic() < deadline:
            time.sleep(0.001)

    def close(self) -> None:
        """Waits a while for the listener to see the end of the pipe."""
        self._listener.join(0.5)

    def _waiting(self) -> bool:
        if not self._listener.is_alive():
            return False
        with contextlib.suppress(OSError):
            (count,) = struct.unpack("i", fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0" * 4))
            return bool(count)
        return False

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self._descriptor, KEPT):
                with self._lock:
                    self.kept += data
                    del self.kept[:-KEPT]
                    self._count += len(data)
        os.close(self._descriptor)
