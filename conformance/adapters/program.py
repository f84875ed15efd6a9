"""A program from outside as functions: a call writes its inputs, asks, and reads the output back as an array."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import mlx.core as mx
import msgspec
import numpy as np

from mlx_assay.conformance.adapters import plan, protocol
from mlx_assay.conformance.adapters.answer import answer, output
from mlx_assay.conformance.adapters.channel import Broken, Channel, shown
from mlx_assay.conformance.adapters.folder import Folder, NoOutput
from mlx_assay.conformance.process.protocol import Ended, Raised
from mlx_assay.conformance.quotation import legible, phrase
from mlx_assay.fixtures import codec
from mlx_assay.fixtures.tensor import DTYPES

TEXT_LIMIT = 4000
"""Characters of what a program says of a call that are kept."""

_unsigned = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


Kind = Literal["unsupported", "error", "", "ValueError", "TypeError", "IndexError"]


class Told(Exception):
    """An answer that is no output: `kind` is `unsupported`, `error`, one of protocol.Builtin, or empty.

    It is empty where the answer itself is at fault: an output that cannot be read, a plan that cannot be run.
    """

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = legible(message, TEXT_LIMIT)


class Program:
    """A started program. `parameters` are the names of the arguments of each operation that is looked for.

    An answer may take `seconds`; 0 leaves that to who waits for the case.

    Broken: it does not start, or does not answer as it must.
    """

    def __init__(
        self,
        argv: Sequence[str],
        folder: str,
        executor: Mapping[str, str],
        parameters: Mapping[str, Sequence[str]],
        *,
        deadline: float | None = None,
        seconds: float = 0.0,
    ) -> None:
        self._seconds = seconds
        self._capacity = 0
        self._parameters = parameters
        self._seq = 0
        self._folder = Folder(folder)
        with contextlib.ExitStack() as undone:
            undone.callback(self._folder.close)
            self._channel = Channel(argv, folder)
            undone.callback(self._channel.end)
            self.started = self._start(executor, deadline)
            undone.pop_all()

    @property
    def details(self) -> dict[str, str]:
        """What the program says of itself, cleaned."""
        told = self.started
        said = {"name": told.name, "version": told.version, "runtime": told.runtime, "device": told.device}
        if told.mlx is not msgspec.UNSET:
            said["mlx"] = told.mlx
        return {key: phrase(text, 200) for key, text in said.items()} | {"protocol": str(told.protocol)}

    def allow(self, capacity: int) -> None:
        """Bounds the output of the next call, in bytes of its data."""
        self._capacity = capacity

    def functions(self) -> dict[str, Callable[..., mx.array]]:
        """A function for each operation that is looked for and that the program has."""
        return {name: self._function(name) for name in self._parameters if name in self.started.operations}

    def stop(self) -> bool:
        """Ends the program; whether it ended by itself."""
        obeyed = self._channel.end(protocol.encode(protocol.Stop()))
        self._folder.close()
        return obeyed

    def kill(self) -> None:
        """Ends the program without a word."""
        self._channel.end()
        self._folder.close()

    def _start(self, executor: Mapping[str, str], deadline: float | None) -> protocol.Started:
        self._channel.send(protocol.encode(protocol.Start(protocol.VERSION, dict(executor))))
        line = self._channel.receive(deadline)
        try:
            return protocol.decode_started(line)
        except (ValueError, RecursionError) as error:
            raise Broken("error", f"Expected the answer to `start` but got {shown(line)}: {error}") from None

    def _function(self, operation: str) -> Callable[..., mx.array]:
        def call(*arguments: Any) -> mx.array:
            return self._call(operation, dict(zip(self._parameters[operation], arguments, strict=True)))

        return call

    def _call(self, operation: str, arguments: dict[str, Any]) -> mx.array:
        self._seq += 1
        given, made = f"in-{self._seq}.safetensors", f"out-{self._seq}.safetensors"
        tensors = {name: array for name, value in arguments.items() if (array := plain_array(value)) is not None}
        values = {
            name: protocol.TensorValue() if name in tensors else protocol.value(value)
            for name, value in arguments.items()
        }
        self._folder.write(given, codec.encode(tensors, {}))
        self._folder.discard(made)
        paths = self._folder.place(given), self._folder.place(made)
        try:
            told = self._answer(protocol.Run(self._seq, operation, values, *paths))
            return self._result(told, made, arguments)
        finally:
            self._folder.discard(given)
            self._folder.discard(made)

    def _answer(self, order: protocol.Run) -> protocol.Answer:
        self._channel.send(protocol.encode(order))
        told = answer(self._channel.receive(time.monotonic() + self._seconds if self._seconds else None))
        if told.seq != order.seq:
            raise Broken("error", f"Expected the answer to seq {order.seq} but got one to seq {told.seq}")
        self._channel.quiet()
        return told

    def _result(self, told: protocol.Answer, place: str, arguments: dict[str, Any]) -> mx.array:
        if told.unsupported is not msgspec.UNSET:
            raise Told("unsupported", told.unsupported)
        if told.error is not msgspec.UNSET:
            raise Told("error" if told.type is msgspec.UNSET else told.type, told.error)
        if told.plan is not msgspec.UNSET:
            return self._planned(told.plan, arguments)
        try:
            return mlx_array(output(self._folder, place, self._capacity))
        except NoOutput as error:
            raise Told("", str(error)) from None

    def _planned(self, document: msgspec.Raw, arguments: dict[str, Any]) -> mx.array:
        """Runs a launch plan; what our executors refuse is the plan's fault, never an error that a contract expects."""
        if not self.started.plans:
            raise Told("", "Expected `plans: true` in the answer to `start` of a program that answers with a plan")
        try:
            result = plan.run(document, arguments)
            mx.eval(result)
        except plan.PlanError as error:
            raise Told("", str(error)) from None
        except Exception as error:
            raise Told("", f"The plan cannot be run: {type(error).__name__}: {error}") from None
        return result


def reply(call: int, error: BaseException) -> Raised | Ended:
    """What is told of a call that came to no output."""
    if isinstance(error, Broken):
        return Ended(call, error.verdict, error.message)
    if not isinstance(error, Told):
        error = Told("", f"{type(error).__name__}: {error}")
    builtin = {"unsupported": ["NotImplementedError"], "error": [], "": []}
    return Raised(call, builtin.get(error.kind, [error.kind]), error.kind, error.message, "")


def plain_array(value: Any) -> np.ndarray | None:
    """The logical values of an array of MLX or NumPy, row contiguous and bit by bit; None for a plain value."""
    if isinstance(value, mx.array):
        words = np.array(value.view(_unsigned[value.dtype.size]))
        return words.view(DTYPES[str(value.dtype).removeprefix("mlx.core.")])
    if not isinstance(value, np.ndarray):
        return None
    if not value.dtype.isnative:
        # A file of tensors cannot say the byte order, so that no program could refuse it.
        raise Told("TypeError", f"Expected an array in the machine's byte order but got {value.dtype}")
    return np.array(value, order="C")


def mlx_array(array: np.ndarray) -> mx.array:
    """An array of MLX with these bits."""
    words = mx.array(array.view(f"u{array.dtype.itemsize}"))
    return words.view(getattr(mx, str(array.dtype)))
