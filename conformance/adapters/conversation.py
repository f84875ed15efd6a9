"""One program from outside as adapter-check talks to it: order by order, each answer as it came."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple

import msgspec
import numpy as np

from mlx_assay.conformance.adapters import folder, protocol
from mlx_assay.conformance.adapters.answer import answer, output
from mlx_assay.conformance.adapters.channel import Broken, Channel, shown
from mlx_assay.conformance.process.transcript import Transcript
from mlx_assay.fixtures import codec
from mlx_assay.fixtures.tensor import Tensor

PAUSE_SECONDS = 0.05
"""How long to listen for a line that nobody asked for."""

ERRORS_SHOWN = 1000
"""Characters of standard error that a remark shows."""

Arguments = Mapping[str, Tensor | np.ndarray | float | int | str | None]


class Heard(NamedTuple):
    """An answer: what it says, what came as output, why nothing did, and whether the input's file stayed as it was."""

    answer: protocol.Answer
    output: np.ndarray | None
    fault: str
    input_kept: bool


class Conversation:
    """A program in a process group and a folder of its own; `limit` is in seconds, for each answer.

    Broken: it ended, does not answer, or says what is no answer.
    """

    def __init__(self, argv: tuple[str, ...], executor: Mapping[str, str], limit: float) -> None:
        self._executor = dict(executor)
        self._limit = limit
        self._path = folder.create()
        self._folder = folder.Folder(self._path)
        reading, writing = os.pipe()
        self._errors = Transcript(reading)
        began = time.monotonic()
        try:
            self._channel = Channel(argv, self._path, alone=True, errors=writing)
        except Broken:
            self._folder.close()
            folder.remove(self._path)
            raise
        finally:
            os.close(writing)
        self.began = began

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.end()
        self._folder.close()
        folder.remove(self._path)

    @property
    def errors(self) -> str:
        """The last that it wrote to standard error."""
        self._errors.settle()
        return self._errors.text(0, ERRORS_SHOWN)

    @property
    def left(self) -> list[str]:
        """What lies in its folder."""
        return self._folder.left()

    def start(self) -> bytes:
        """The answer to `start`, as it came."""
        self._channel.send(protocol.encode(protocol.Start(protocol.VERSION, self._executor)))
        return self._channel.receive(self._deadline)

    def ask(self, operation: str, arguments: Arguments, seq: int, capacity: int = 1 << 26) -> Heard:
        """The answer to a `run`."""
        given, made = f"in-{seq}.safetensors", f"out-{seq}.safetensors"
        tensors = {name: array for name, value in arguments.items() if (array := _array(value)) is not None}
        values = {
            name: protocol.TensorValue() if name in tensors else protocol.value(_plain(value))
            for name, value in arguments.items()
        }
        sent = codec.encode(tensors, {})
        self._folder.write(given, sent)
        paths = self._folder.place(given), self._folder.place(made)
        self._channel.send(protocol.encode(protocol.Run(seq, operation, values, *paths)))
        told = answer(self._channel.receive(self._deadline))
        found, fault = self._output(made, capacity) if told.ok is not msgspec.UNSET else (None, "")
        kept = self._unchanged(given, sent)
        for name in (given, made):
            self._folder.discard(name)
        return Heard(told, found, fault, kept)

    def say(self, line: bytes) -> None:
        """Sends a line of any kind."""
        self._channel.send(line)

    def listen(self) -> None:
        """Broken where something is said, or the program ends, though nothing was asked."""
        try:
            line = self._channel.receive(time.monotonic() + PAUSE_SECONDS)
        except Broken as broken:
            if broken.verdict == "timed-out":
                return
            raise
        raise Broken("error", f"Expected one line an order on standard output but got {shown(line)} too")

    def stop(self, *, farewell: bool = True) -> int | None:
        """The exit status after `stop`, or after the end of standard input alone; None where it had to be killed."""
        ended = self._channel.end(protocol.encode(protocol.Stop()) if farewell else b"", patient=True)
        return self._channel.status if ended else None

    def kill(self) -> None:
        """Ends it without a word."""
        self._channel.end()

    @property
    def _deadline(self) -> float:
        return time.monotonic() + self._limit

    def _output(self, name: str, capacity: int) -> tuple[np.ndarray | None, str]:
        try:
            return output(self._folder, name, capacity), ""
        except folder.NoOutput as error:
            return None, str(error)

    def _unchanged(self, name: str, sent: bytes) -> bool:
        try:
            return self._folder.read(name, len(sent)) == sent
        except folder.NoOutput:
            return False


def _array(value: Any) -> np.ndarray | None:
    if isinstance(value, Tensor):
        return value.array
    return value if isinstance(value, np.ndarray) else None


def _plain(value: Any) -> float | int | str | None:
    assert not isinstance(value, Tensor | np.ndarray)
    plain: float | int | str | None = value
    return plain
