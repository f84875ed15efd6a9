"""The scheduler: where chunks run. Any executor of concurrent.futures; processes here, or a Dask cluster."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from typing import Any

from mlx_assay.conformance.counting import counted
from mlx_assay.conformance.sweeping import worker

AHEAD = 2
"""Chunks a worker that are handed out at a time."""

CONNECT_SECONDS = 30


class SchedulerError(RuntimeError):
    """A scheduler that cannot be had; the message says what to do."""


class Scheduler:
    """Hands chunks to an executor that `make` starts. `room` is how many it may hold at a time."""

    def __init__(self, name: str, make: Callable[[], Executor], room: Callable[[], int]) -> None:
        self.name = name
        self._make = make
        self._room = room
        self._executor: Executor | None = None

    @property
    def room(self) -> int:
        """Chunks that may be under way at a time."""
        return max(1, self._room())

    def submit(self, order: bytes) -> Future[bytes]:
        """Hands an order out; what the executor raises where it is broken."""
        if self._executor is None:
            self._executor = self._make()
        return self._executor.submit(worker.perform, order)

    def renew(self) -> None:
        """Gives up the executor; the next order starts another."""
        self.close()

    def close(self) -> None:
        """Ends the executor without waiting for what it does."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None


def processes(count: int) -> Scheduler:
    """`count` processes of this machine. They are started anew, since MLX does not survive a fork."""

    def make() -> Executor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(count, mp_context=context, initializer=worker.begin)

    return Scheduler(counted(count, "process", "processes"), make, lambda: AHEAD * count)


def cluster(address: str) -> Scheduler:
    """The workers of a Dask cluster, as many as it has while chunks are handed out."""
    try:
        import distributed
    except ImportError as error:
        raise SchedulerError(f"--scheduler needs dask.distributed ({error}): pip install 'mlx-assay[dask]'") from None
    try:
        client: Any = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SchedulerError(f"Expected a Dask scheduler at {address!r} but it cannot be reached: {error}") from None

    def room() -> int:
        return AHEAD * sum(int(threads) for threads in client.nthreads().values())

    return _Cluster(f"Dask at {address}", lambda: client.get_executor(pure=False), room, client)


class _Cluster(Scheduler):
    """Closes its connection with itself; the cluster goes on."""

    def __init__(self, name: str, make: Callable[[], Executor], room: Callable[[], int], client: Any) -> None:
        super().__init__(name, make, room)
        self._client = client

    def renew(self) -> None:
        """The connection mends itself."""

    def close(self) -> None:
        """Takes back what was handed out, and disconnects."""
        super().close()
        self._client.close()
