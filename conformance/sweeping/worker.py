"""The worker: what runs a chunk in a process of a pool or of a cluster; it keeps an implementation's process."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

import msgspec

from mlx_assay.conformance.contract import contracts
from mlx_assay.conformance.judging.judge import applicable
from mlx_assay.conformance.process.implementation import Implementation
from mlx_assay.conformance.sweeping import chunk
from mlx_assay.conformance.sweeping.catalogue import sweep_of
from mlx_assay.conformance.sweeping.examiner import Examiner
from mlx_assay.conformance.sweeping.identity import identity


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk to be judged; `path` are folders in which modules are found."""

    sweep: str
    index: int
    implementation: str | None
    executor: str | None
    limit: float
    every: bool
    path: list[str]


class Desk:
    """What a thread keeps from one chunk to the next."""

    def __init__(self, order: Order) -> None:
        sys.path.extend(folder for folder in order.path if folder not in sys.path)
        self.key = _key(order)
        self.implementation = Implementation(order.implementation, order.executor, order.limit)
        self.identity = identity(self.implementation, every=order.every).digest
        self._examiner: Examiner | None = None

    def examiner(self, order: Order) -> Examiner:
        """The examiner of an order's sweep."""
        if self._examiner is None or self._examiner.sweep.id != order.sweep:
            sweep, environment = sweep_of(order.sweep), self.implementation.environment
            relaxations = applicable(contracts()[sweep.case.operation].relaxations, environment)
            self._examiner = Examiner(sweep, environment["executor"], relaxations, every=order.every)
        return self._examiner


_kept = threading.local()


def perform(order: bytes) -> bytes:
    """Judges the chunk of an order, both as JSON: nothing of the caller's classes has to be there."""
    read = msgspec.json.decode(order, type=Order)
    desk = _desk(read)
    found = chunk.perform(desk.examiner(read), read.index, desk.implementation, desk.identity)
    return msgspec.json.encode(found)


def begin() -> None:
    """Readies a process of a pool: the terminal's Ctrl-C is its parent's matter, and it ends with its parent."""
    import multiprocessing
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.join,), daemon=True).start()


def _follow(ended: Callable[[], object]) -> None:
    ended()
    os._exit(1)


def _desk(order: Order) -> Desk:
    held: Desk | None = getattr(_kept, "desk", None)
    if held is None or held.key != _key(order):
        if held is not None:
            held.implementation.close()
        held = _kept.desk = Desk(order)
    return held


def _key(order: Order) -> tuple[object, ...]:
    return order.implementation, order.executor, order.limit, order.every, tuple(order.path)
