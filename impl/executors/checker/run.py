"""One checked run of a kernel: arrays placed, threads run under one schedule, results and findings taken."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mlx_assay.impl.executors import launch, objects
from mlx_assay.impl.executors.checker import memory
from mlx_assay.impl.executors.checker.compilation import CheckedLibrary
from mlx_assay.impl.executors.checker.finding import Finding, Place
from mlx_assay.impl.executors.checker.findings import Reader
from mlx_assay.impl.executors.checker.memory import Span
from mlx_assay.impl.executors.checker.request import Condition, Request
from mlx_assay.impl.executors.stage import stage

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Argument(NamedTuple):
    """A device array of a call: where its first element is, and the bytes that are its own, some of them before.

    `initial`: what an output holds before the run; None: the poison. `residue`: where memory of its kind begins, modulo
    16; None: as MLX's own.
    """

    name: str
    address: int
    before: int
    size: int
    element: int
    output: bool = False
    initial: bytes | None = None
    residue: int | None = None


@dataclass(frozen=True)
class Work:
    """A kernel and what it was called with."""

    kernel: str
    texts: dict[str, str]
    library: CheckedLibrary
    arguments: Sequence[Argument]
    grid: tuple[int, ...]
    threadgroup: tuple[int, ...]

    @property
    def groups(self) -> tuple[int, ...]:
        """Threadgroups an axis."""
        return tuple(-(-g // t) for g, t in zip(self.grid, self.threadgroup, strict=True))


@dataclass
class Result:
    """What a run left: the bytes of each output, which of them were written, and what was found.

    `atomic`: the bytes that atomics alone have written; None: no atomic has written to this output.
    """

    outputs: list[bytes]
    written: list[bytes | None]
    atomic: list[Mask | None]
    findings: list[Finding]
    inactive: dict[int, Place]  # where a lane that is not there was read, by the runtime's number
    ended: bool


def _spans(work: Work, keep: list[object], poison: int) -> list[Span]:
    spans = []
    for a in work.arguments:
        span = Span(a.name, "device", memory.OUTPUT if a.output else memory.INPUT, a.size, a.element)
        span.unit = min(4, a.element & -a.element)
        span.origin, span.source, span.residue = a.before, a.address - a.before, a.residue
        if a.output:
            filled = a.initial if a.initial is not None else poison.to_bytes(4, "little") * (a.size // 4 + 1)
            held = ctypes.create_string_buffer(filled, max(len(filled), 1))
            keep.append(held)
            span.source, span.known = ctypes.addressof(held), a.initial is not None
        spans.append(span)
    for array in work.library.arrays:
        spans.append(Span(array.name, "threadgroup", memory.ARRAY, array.bytes, array.element, array.unit, known=False))
    return spans


def run(work: Work, condition: Condition) -> Result:
    """Runs every thread once."""
    keep: list[object] = []
    spans = _spans(work, keep, condition.poison)
    space = memory.take_space()
    try:
        devices = [s for s in spans if s.kind != memory.ARRAY]
        for number, span in enumerate(devices):
            space.place(span, number)
        for number, span in enumerate(spans[len(devices) :]):
            space.place(span, number)
        x, y, z = work.groups
        asked = Request(space, spans, work.library, x * y * z, condition)
        request = launch.prepare(work.library.thread, 0, work.grid, work.threadgroup, condition.poison, condition.code)
        buffers = (ctypes.c_uint64 * max(len(devices), 1))(*(s.begin + s.origin for s in devices))
        request.buffers, request.check = ctypes.addressof(buffers), asked.address
        with stage("kernel"):
            fault = objects.runtime().assay_launch(ctypes.byref(request))
        if fault == 2:
            raise RuntimeError(
                "[metal_kernel] the host executor got no memory for its stacks (256 MiB of address space)"
            )
        reader = Reader(work, spans, condition.schedule)
        findings, inactive = reader.findings(asked), reader.inactive(asked)
        outputs = [s for s in devices if s.kind == memory.OUTPUT]
        atomic = [_atomic(s) if asked.atomic(n) else None for n, s in enumerate(devices) if s.kind == memory.OUTPUT]
        return Result(
            [ctypes.string_at(s.begin, s.bytes) for s in outputs],
            [ctypes.string_at(s.marks, s.bytes) if s.marks else None for s in outputs],
            atomic,
            findings,
            inactive,
            not fault,
        )
    finally:
        for span in spans:
            space.release(span)
        memory.give_space(space)


def _atomic(span: Span) -> Mask:
    """Which bytes of an output no plain write has touched; its shadow tells, of which a cell begins with that write."""
    cells = -(-span.bytes // span.unit)
    shadow = np.frombuffer(ctypes.string_at(span.cells, cells * memory.CELL_BYTES), np.uint32).reshape(cells, -1)
    mask: Mask = np.repeat(shadow[:, 0] == 0, span.unit)[: span.bytes]
    return mask


def unwritten(result: Result, index: int) -> Mask:
    """Which bytes of an output were not written."""
    marks = result.written[index]
    if marks is None:
        return np.zeros(len(result.outputs[index]), np.bool_)
    unmarked: Mask = np.frombuffer(marks, np.uint8) == 0
    return unmarked
