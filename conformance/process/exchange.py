"""One case under way: what was asked of the child process, and the outcomes that have come back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mlx_assay.conformance.process import arena
from mlx_assay.conformance.process.account import account
from mlx_assay.conformance.process.child import Child
from mlx_assay.conformance.process.protocol import (
    TEXT_LIMIT,
    Argument,
    Call,
    Ended,
    Found,
    PlainArgument,
    Raised,
    Reply,
    Request,
    Returned,
    TensorArgument,
)
from mlx_assay.conformance.quotation import legible, phrase
from mlx_assay.conformance.stopwatch import stage
from mlx_assay.conformance.verdict import Verdict
from mlx_assay.fixtures.tensor import DTYPES, Tensor, viewed

POISONS = (0xFFFFFFFF, 0x7B7B7B7B)
"""32-bit patterns of the two rounds: NaN in every float dtype, then a large finite number in each; no valid id."""

SCHEDULES: tuple[Literal["in-order", "reverse"], ...] = ("in-order", "reverse")
"""Orders of a threadgroup's threads in the two rounds: a kernel that lacks a barrier may answer by one of them."""

ARENA_KEPT = 1 << 26
"""Bytes that the arena may hold between cases."""

SMALLEST_OUTPUT = 4096

LARGEST_RANK = 32
NAME_LIMIT = 200

Arguments = Sequence[Tensor | float | int | str | None]


@dataclass(frozen=True)
class Outcome:
    """What one call came to.

    `raised` where it raised; else `type` is empty for an mx.array, of the given dtype and shape, whose content is
    `array` (None where it is larger than any right answer). `changed` are the positions of inputs that it changed.
    `found` is what the checker says of its kernels, whatever the call came to; `launches` counts those it has run.
    """

    raised: Raised | None = None
    type: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    array: np.ndarray | None = None
    changed: tuple[int, ...] = ()
    found: str = ""
    launches: int = 0


class Run:
    """One case under way: the outcomes that have come, and the rest.

    `rounds` are numbers of POISONS and SCHEDULES: every subcase is called once a round.
    """

    def __init__(
        self,
        child: Child,
        operation: str,
        subcases: Sequence[Arguments],
        limit: float,
        expansion: int = 1,
        rounds: Sequence[int] = range(len(POISONS)),
    ) -> None:
        self.child = child
        self.outcomes: list[Outcome] = []
        self._deadline = time.monotonic() + limit
        self._subcases = subcases
        self._expansion = expansion
        self._end = 0
        described = [[self._described(argument) for argument in subcase] for subcase in subcases]
        self._calls = [self._call(index, round_) for round_ in rounds for index in range(len(subcases))]
        self._request = Request(operation, described, self._calls)

    def send(self) -> None:
        """Hands the request over."""
        self.child.send(self._request, self._deadline)

    def pump(self) -> None:
        """Takes in what has come, without waiting."""
        with stage("transport"):
            while self.child.pending() and len(self.outcomes) < len(self._calls):
                self._next(self.child.receive(self._deadline))

    def complete(self) -> list[Outcome]:
        """Every outcome, calls in order. Death if the process does not live so long; `outcomes` holds what came."""
        with stage("transport"):
            while len(self.outcomes) < len(self._calls):
                with stage("waiting"):
                    reply = self.child.receive(self._deadline)
                self._next(reply)
        if self.child.pending():
            raise self.child.foul("more replies than calls")
        if self._end > ARENA_KEPT:
            arena.empty(self.child.arena)
        return self.outcomes

    def _described(self, argument: Tensor | float | int | str | None) -> Argument:
        if not isinstance(argument, Tensor):
            return PlainArgument.make(argument)
        base = argument.base
        offset = self._reserve(base.nbytes)
        arena.write(self.child.arena, base, offset)
        return TensorArgument(offset, argument.dtype, list(base.shape), argument.steps, argument.kind)

    def _call(self, index: int, round_: int) -> Call:
        tensors = [argument for argument in self._subcases[index] if isinstance(argument, Tensor)]
        largest = max((viewed(tensor.base, tensor.steps, np).size for tensor in tensors), default=0)
        capacity = SMALLEST_OUTPUT + 4 * self._expansion * largest
        output = self._reserve(capacity)
        after = self._reserve(sum(array.nbytes for tensor in tensors for array in _observed(tensor)))
        schedule = SCHEDULES[round_]
        return Call(index, POISONS[round_], output, capacity, after, overwrite=round_ > 0, schedule=schedule)

    def _reserve(self, size: int) -> int:
        offset = self._end
        self._end += arena.aligned(size)
        return offset

    def _next(self, reply: Reply) -> None:
        index = len(self.outcomes)
        if isinstance(reply, Ended) and reply.call == index:
            raise self.child.lost(Verdict(reply.verdict), legible(reply.message, TEXT_LIMIT))
        if not isinstance(reply, Returned | Raised | Found) or reply.call != index:
            raise self.child.foul(f"a reply out of turn where call {index} was due")
        account(reply.spent)
        call = self._calls[index]
        changed = self._changed(call)
        if isinstance(reply, Found):
            text = legible(reply.text, TEXT_LIMIT) or "?"
            self.outcomes.append(Outcome(changed=changed, found=text, launches=reply.launches))
            return
        if isinstance(reply, Raised):
            self.outcomes.append(Outcome(raised=_bounded(reply), changed=changed, launches=reply.launches))
            return
        if len(reply.shape) > LARGEST_RANK:
            raise self.child.foul(f"an output of {len(reply.shape)} axes")
        array = self._array(reply, call) if reply.written else None
        kind, dtype = phrase(reply.type, NAME_LIMIT), phrase(reply.dtype, NAME_LIMIT)
        self.outcomes.append(Outcome(None, kind, dtype, tuple(reply.shape), array, changed, "", reply.launches))

    def _array(self, reply: Returned, call: Call) -> np.ndarray | None:
        """A copy of the output's bytes; None for a dtype that no contract has."""
        dtype = DTYPES.get(reply.dtype)
        if dtype is None:
            return None
        size = dtype.itemsize
        for extent in reply.shape:
            size *= extent
            if not 0 <= extent <= call.capacity or size > call.capacity:
                raise self.child.foul(f"an output of shape {reply.shape}, larger than its place")
        array = np.empty(reply.shape, dtype=dtype)
        if size and not arena.read(self.child.arena, array, call.output):
            raise self.child.foul("an output that is not in the arena")
        return array

    def _changed(self, call: Call) -> tuple[int, ...]:
        changed = []
        offset = call.after
        for position, argument in enumerate(self._subcases[call.subcase]):
            if not isinstance(argument, Tensor):
                continue
            for before in _observed(argument):
                after = np.empty(before.nbytes, dtype=np.uint8)
                held = not before.size or arena.read(self.child.arena, after, offset)
                if not held or not np.array_equal(after, before.reshape(-1).view(np.uint8)):
                    changed.append(position)
                offset += before.nbytes
        return tuple(dict.fromkeys(changed))


def _bounded(raised: Raised) -> Raised:
    """What an exception said, cut and cleaned: it need not come from the server."""
    return Raised(
        call=raised.call,
        bases=raised.bases,
        type=phrase(raised.type, NAME_LIMIT),
        message=legible(raised.message, TEXT_LIMIT),
        traceback=legible(raised.traceback, TEXT_LIMIT),
    )


def _observed(tensor: Tensor) -> list[np.ndarray]:
    """The bits that a call must leave alone: the base, and in MLX, where objects can be rebound, a view's own."""
    return [tensor.base, tensor.array] if tensor.kind == "mx" and tensor.steps else [tensor.base]
